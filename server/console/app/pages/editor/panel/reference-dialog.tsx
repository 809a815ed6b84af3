import { Dialog } from '../../../components/dialog.tsx'
import { editorText } from '../../../text/editor.ts'
import { connect, parameterReference } from '../document/edits.ts'
import { outputTree } from '../document/ports.ts'
import { outputReference, outputText, upstreamOf } from '../document/references.ts'
import type { Output } from '../document/schema.ts'
import type { Path } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

const itemClass = 'hover:bg-raised flex w-full items-baseline gap-2 rounded px-2 py-1 text-left'

/** Chooses where an input takes its value from: the same as dragging an output to it, for the keyboard too. */
export function ReferenceDialog({ node, path, close }: { node: string; path: Path; close: () => void }) {
  const { workflow, tasks, apply } = useEditor()
  const sources = workflow.nodes.filter(({ id }) => id !== node && !upstreamOf(workflow, id).has(node))
  const choose = (reference: string) => {
    apply(connect(node, path, reference))
    close()
  }
  return (
    <Dialog title={editorText.referenceTitle(outputText(path))} close={close}>
      {sources.length + workflow.parameters.length === 0 && <p>{editorText.noSources}</p>}
      {workflow.parameters.length > 0 && (
        <section aria-label={editorText.parameters}>
          <h3 className="font-medium">{editorText.parameters}</h3>
          {workflow.parameters.map(({ name, parameter }) => (
            <button key={name} type="button" className={itemClass} onClick={() => choose(parameterReference(name))}>
              <span className="font-mono">{name}</span>
              <span className="text-muted text-xs">{parameter.type}</span>
            </button>
          ))}
        </section>
      )}
      {sources.map(({ id, task }) => {
        const facts = tasks.get(task)
        return (
          <section key={id} aria-label={editorText.resultOf(id)}>
            <h3 className="font-medium">{editorText.resultOf(id)}</h3>
            <OutputTree
              outputs={facts ? outputTree(facts) : []}
              choose={output => choose(outputReference(id, outputText(output)))}
            />
          </section>
        )
      })}
    </Dialog>
  )
}

function OutputTree({ outputs, choose }: { outputs: readonly Output[]; choose: (path: Path) => void }) {
  return (
    <ul className="border-line ml-2 border-l pl-2">
      {outputs.map(output => {
        const { path, label, kind, children, description } = output
        const name = (
          <>
            <span className="font-mono">{label}</span>
            <span className="text-muted text-xs">{kind}</span>
          </>
        )
        return (
          <li key={label}>
            <button
              type="button"
              title={description}
              className={itemClass}
              aria-label={`${outputText(path)}, ${kind}`}
              onClick={() => choose(path)}
            >
              {name}
            </button>
            {children.length > 0 && <OutputTree outputs={children} choose={choose} />}
          </li>
        )
      })}
    </ul>
  )
}
