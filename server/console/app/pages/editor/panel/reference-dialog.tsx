import { Dialog } from '../../../components/dialog.tsx'
import { editorText } from '../../../text/editor.ts'
import { connect, takeList } from '../document/edits.ts'
import { type Offer, offersFor } from '../document/offers.ts'
import { outputText } from '../document/references.ts'
import type { Path } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

/** The path of an input, or the list for whose items a node runs. */
export type Picked = Path | 'list'

/** Chooses where a node takes a value from: the same as dragging an output to it, for the keyboard too. */
export function ReferenceDialog({ node, picked, close }: { node: string; picked: Picked; close: () => void }) {
  const { workflow, tasks, nested, apply } = useEditor()
  const isList = picked === 'list'
  const { item, parameters, nodes } = offersFor(workflow, tasks, node, isList ? 'list' : 'value', nested)
  const choose = (reference: string) => {
    apply(isList ? takeList(node, reference) : connect(node, picked, reference))
    close()
  }
  const title = isList ? editorText.listTitle(node) : editorText.referenceTitle(outputText(picked))
  return (
    <Dialog title={title} close={close}>
      {item.length + parameters.length + nodes.length === 0 && <p>{editorText.noSources}</p>}
      <Sources name={editorText.item} offers={item} choose={choose} />
      <Sources name={editorText.parameters} offers={parameters} choose={choose} />
      {nodes.map(({ id, main, all }) => (
        <section key={id} aria-label={editorText.resultOf(id)}>
          <h3 className="font-medium">{editorText.resultOf(id)}</h3>
          {main && <Source offer={main} name={main.name} choose={choose} />}
          {isList && all.length === 0 && <p className="text-muted px-2 text-xs">{editorText.noList}</p>}
          {all.length > 0 && (
            <details>
              <summary className="text-muted px-2 py-1">{isList ? editorText.allLists : editorText.allOutputs}</summary>
              <OfferTree offers={all} choose={choose} />
            </details>
          )}
        </section>
      ))}
    </Dialog>
  )
}

type Choose = (reference: string) => void

/** Values that are no results, with what is in them. */
function Sources({ name, offers, choose }: { name: string; offers: readonly Offer[]; choose: Choose }) {
  if (offers.length === 0) return null
  return (
    <section aria-label={name}>
      <h3 className="font-medium">{name}</h3>
      {offers.map(offer => (
        <div key={offer.reference}>
          <Source offer={offer} name={offer.name} choose={choose} />
          {offer.children.length > 0 && <OfferTree offers={offer.children} choose={choose} />}
        </div>
      ))}
    </section>
  )
}

/** A value that can be taken. `within` is read aloud before its name. */
const Source = ({
  offer: { reference, kind, description },
  name,
  within,
  choose,
}: {
  offer: Offer
  name: string
  within?: string
  choose: Choose
}) => (
  <button
    type="button"
    title={description}
    className="hover:bg-raised flex w-full items-baseline gap-2 rounded px-2 py-1 text-left"
    onClick={() => choose(reference)}
  >
    <span className="font-mono">
      {within && <span className="sr-only">{within}</span>}
      {name}
    </span>
    <span className="text-muted text-xs">{kind}</span>
  </button>
)

const OfferTree = ({ offers, choose, within = '' }: { offers: readonly Offer[]; choose: Choose; within?: string }) => (
  <ul className="border-line ml-2 border-l pl-2">
    {offers.map(offer => (
      <li key={offer.reference}>
        <Source offer={offer} name={offer.label} within={within} choose={choose} />
        {offer.children.length > 0 && <OfferTree offers={offer.children} choose={choose} within={`${offer.name} `} />}
      </li>
    ))}
  </ul>
)
