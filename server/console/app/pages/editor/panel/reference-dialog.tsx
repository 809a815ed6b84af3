import { Dialog } from '../../../components/dialog.tsx'
import { editorText } from '../../../text/editor.ts'
import { connect, parameterReference } from '../document/edits.ts'
import { outputTree } from '../document/ports.ts'
import { downstreamOf, outputReference, outputText } from '../document/references.ts'
import { mainOutput, type OutputField } from '../document/schema.ts'
import type { Path } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

/** Chooses where an input takes its value from: the same as dragging an output to it, for the keyboard too. */
export function ReferenceDialog({ node, path, close }: { node: string; path: Path; close: () => void }) {
  const { workflow, tasks, apply } = useEditor()
  const after = downstreamOf(workflow, node)
  const sources = workflow.nodes.filter(({ id }) => id !== node && !after.has(id))
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
            <Source key={name} name={name} kind={parameter.type} choose={() => choose(parameterReference(name))} />
          ))}
        </section>
      )}
      {sources.map(({ id, task }) => {
        const facts = tasks.get(task)
        const tree = facts ? outputTree(facts) : []
        const main = mainOutput(tree)
        const take = (path: Path) => choose(outputReference(id, outputText(path)))
        return (
          <section key={id} aria-label={editorText.resultOf(id)}>
            <h3 className="font-medium">{editorText.resultOf(id)}</h3>
            {main && <Source {...main} name={outputText(main.path)} choose={() => take(main.path)} />}
            <details>
              <summary className="text-muted px-2 py-1">{editorText.allOutputs}</summary>
              <OutputTree outputs={tree} choose={take} />
            </details>
          </section>
        )
      })}
    </Dialog>
  )
}

/** A value that can be taken. `within` is read aloud before its name. */
const Source = (props: { name: string; kind: string; description?: string; within?: string; choose: () => void }) => (
  <button
    type="button"
    title={props.description}
    className="hover:bg-raised flex w-full items-baseline gap-2 rounded px-2 py-1 text-left"
    onClick={props.choose}
  >
    <span className="font-mono">
      {props.within && <span className="sr-only">{props.within}</span>}
      {props.name}
    </span>
    <span className="text-muted text-xs">{props.kind}</span>
  </button>
)

const OutputTree = ({ outputs, choose }: { outputs: readonly OutputField[]; choose: (path: Path) => void }) => (
  <ul className="border-line ml-2 border-l pl-2">
    {outputs.map(({ path, label, children, ...output }) => (
      <li key={label}>
        <Source {...output} name={label} within={`${outputText(path.slice(0, -1))} `} choose={() => choose(path)} />
        {children.length > 0 && <OutputTree outputs={children} choose={choose} />}
      </li>
    ))}
  </ul>
)
