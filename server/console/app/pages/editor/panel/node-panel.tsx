import { Copy, Trash2, X } from 'lucide-react'
import { useState } from 'react'
import type { JsonSchema } from '../../../api/schema.ts'
import { Button, IconButton } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { addEdge, duplicateNode, nodePath, removeEdge, removeNodes, renameNode } from '../document/edits.ts'
import { downstreamOf } from '../document/references.ts'
import { shapeOf } from '../document/schema.ts'
import { freeId } from '../document/source.ts'
import type { Path, WorkflowNode } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import { ResultPreview } from '../run/node-run.tsx'
import { NodeSettings } from './node-settings.tsx'
import { ChoiceField, NameField, ProblemNotices, PropertiesHeading, useMembers } from './properties.tsx'
import { ReferenceDialog } from './reference-dialog.tsx'
import { ValueField } from './value-field.tsx'

/** Everything that a node says, as a form. */
export function NodePanel({ node }: { node: WorkflowNode }) {
  const { apply, readOnly, reveal, tasks, runs, workflow } = useEditor()
  const problems = useProblems()
  const [picking, setPicking] = useState<Path>()
  const { id } = node
  const task = tasks.get(node.task)
  const { set, text } = useMembers(nodePath(id))
  const run = runs.get(id)
  const general = problems.filter(problem => problem.node === id && !problem.field?.startsWith('inputs'))
  const rename = (next: string) => {
    if (apply(renameNode(id, next))) reveal(next)
  }
  const duplicate = () => {
    const copy = freeId(id, new Set(workflow.nodes.map(one => one.id)))
    if (apply(duplicateNode(id, copy))) reveal(copy)
  }
  return (
    <div className="space-y-4">
      <div className="flex items-center justify-between gap-2">
        <PropertiesHeading>
          {editorText.node} {id}
        </PropertiesHeading>
        <span className="flex">
          {!readOnly && <IconButton icon={Copy} label={editorText.duplicateNode} onClick={duplicate} />}
          {!readOnly && (
            <IconButton
              icon={Trash2}
              danger
              label={editorText.deleteNode}
              onClick={() => {
                if (apply(removeNodes([id]))) reveal(undefined)
              }}
            />
          )}
          <IconButton icon={X} label={editorText.close} onClick={() => reveal(undefined)} />
        </span>
      </div>
      <ProblemNotices problems={general} />
      {run && <ResultPreview node={run} />}
      <NameField label={editorText.id} hint={editorText.idHint} value={id} commit={rename} />
      {text('displayName', 'name', node.name)}
      <ChoiceField
        label={editorText.task}
        hint={task?.description}
        value={node.task}
        options={[
          ...(task ? [] : [{ id: node.task, name: node.task || editorText.unknownTask }]),
          ...[...tasks.values()].map(({ id, title }) => ({ id, name: title })),
        ]}
        change={value => set('task', value)}
      />
      {(task?.needs_model !== false || node.model !== undefined) && (
        <ChoiceField
          label={editorText.model}
          value={node.model ?? ''}
          none={editorText.noModel}
          options={[...new Set([...(task?.models ?? []), ...(node.model === undefined ? [] : [node.model])])]}
          change={value => set('model_id', value || undefined)}
        />
      )}
      {task && <Inputs node={node} schema={task.input_schema} pick={setPicking} />}
      <Order node={node} />
      <NodeSettings node={node} />
      {picking && <ReferenceDialog node={id} path={picking} close={() => setPicking(undefined)} />}
    </div>
  )
}

function Inputs({ node, schema, pick }: { node: WorkflowNode; schema: JsonSchema; pick: (path: Path) => void }) {
  const { properties, required } = shapeOf(schema, schema)
  const names = Object.keys(properties)
  const few = names.filter(name => required.includes(name) || node.inputs[name] !== undefined)
  const unknown = Object.keys(node.inputs).filter(name => !names.includes(name))
  const field = (name: string) => (
    <ValueField
      key={name}
      node={node.id}
      path={[name]}
      schema={properties[name] ?? {}}
      root={schema}
      value={node.inputs[name]}
      pick={pick}
    />
  )
  const more = names.filter(name => !few.includes(name))
  return (
    <section aria-label={editorText.inputs} className="space-y-3">
      <h3 className="font-medium">{editorText.inputs}</h3>
      {[...few, ...unknown].map(field)}
      {more.length > 0 && <More count={more.length}>{() => more.map(field)}</More>}
    </section>
  )
}

/** Fields that are drawn only when they are asked for. */
function More({ count, children }: { count: number; children: () => React.ReactNode }) {
  const [open, setOpen] = useState(false)
  return (
    <div className="space-y-3">
      <Button small aria-expanded={open} onClick={() => setOpen(!open)} label={editorText.moreFields(count)} />
      {open && children()}
    </div>
  )
}

/** The nodes that this one waits for without taking a value. */
function Order({ node: { id } }: { node: WorkflowNode }) {
  const { workflow, apply, readOnly } = useEditor()
  const before = workflow.edges.filter(edge => edge.to === id).map(({ from }) => from)
  const after = downstreamOf(workflow, id)
  const offered = workflow.nodes.filter(node => node.id !== id && !before.includes(node.id) && !after.has(node.id))
  return (
    <section aria-label={editorText.after} className="space-y-2">
      <h3 className="font-medium">{editorText.after}</h3>
      <p className="text-muted text-xs">{editorText.afterHint}</p>
      {before.map(from => (
        <p key={from} className="flex items-center justify-between">
          {from}
          {!readOnly && (
            <IconButton icon={X} label={editorText.removeAfter(from)} onClick={() => apply(removeEdge(from, id))} />
          )}
        </p>
      ))}
      {!readOnly && offered.length > 0 && (
        <ChoiceField
          label={editorText.addAfter}
          value=""
          none={editorText.chooseNode}
          options={offered.map(one => one.id)}
          change={from => from && apply(addEdge(from, id))}
        />
      )}
    </section>
  )
}
