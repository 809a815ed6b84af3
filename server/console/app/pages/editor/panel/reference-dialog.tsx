import { Dialog } from '../../../components/dialog.tsx'
import { editorText } from '../../../text/editor.ts'
import { connect, parameterReference } from '../document/edits.ts'
import { outputTree } from '../document/ports.ts'
import { downstreamOf, outputReference, outputText } from '../document/references.ts'
import { mainOutput, type OutputField } from '../document/schema.ts'
import type { Path } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

const itemClass = 'hover:bg-raised flex w-full items-baseline gap-2 rounded px-2 py-1 text-left'

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
            <button key={name} type="button" className={itemClass} onClick={() => choose(parameterReference(name))}>
              <span className="font-mono">{name}</span>
              <span className="text-muted text-xs">{parameter.type}</span>
            </button>
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
            {main && (
              <button type="button" className={itemClass} title={main.description} onClick={() => take(main.path)}>
                <span className="font-mono">{outputText(main.path)}</span>
                <span className="text-muted text-xs">{main.kind}</span>
              </button>
            )}
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

const OutputTree = ({ outputs, choose }: { outputs: readonly OutputField[]; choose: (path: Path) => void }) => (
  <ul className="border-line ml-2 border-l pl-2">
    {outputs.map(({ path, label, kind, children, description }) => (
      <li key={label}>
        <button type="button" title={description} className={itemClass} onClick={() => choose(path)}>
          <span className="font-mono">
            <span className="sr-only">{outputText(path.slice(0, -1))} </span>
            {label}
          </span>
          <span className="text-muted text-xs">{kind}</span>
        </button>
        {children.length > 0 && <OutputTree outputs={children} choose={choose} />}
      </li>
    ))}
  </ul>
)
