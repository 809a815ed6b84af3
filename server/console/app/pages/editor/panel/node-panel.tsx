import { Copy, Play, StepForward, Trash2, X } from 'lucide-react'
import { useState } from 'react'
import { Button, IconButton } from '../../../components/button.tsx'
import { modelOption, taskOption } from '../../../components/options.tsx'
import { PickerField } from '../../../components/picker-field.tsx'
import { editorText } from '../../../text/editor.ts'
import { otherProblems } from '../document/diagnostics.ts'
import { addEdge, duplicateNode, nodePath, removeEdge, removeNodes, renameNode } from '../document/edits.ts'
import { runsWorkflow } from '../document/nested.ts'
import { downstreamOf } from '../document/references.ts'
import { freeId } from '../document/source.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import { ResultPreview } from '../run/node-run.tsx'
import { NodeWait } from '../run/node-wait.tsx'
import { NodeInputs } from './node-inputs.tsx'
import { itemMembers, NodeItems } from './node-items.tsx'
import { NodeNote, noteMembers, PinResult } from './node-note.tsx'
import { NodeSettings, settings } from './node-settings.tsx'
import { ChoiceField, NameField, ProblemNotices, PropertiesHeading, useMembers } from './properties.tsx'
import { type Picked, ReferenceDialog } from './reference-dialog.tsx'

/** The members of a node whose problems stand at their fields. */
const members = ['name', 'task', 'model_id', 'inputs', ...itemMembers, ...noteMembers, ...settings]

/** Everything that a node says, as a form. */
export function NodePanel({ node }: { node: WorkflowNode }) {
  const { apply, readOnly, reveal, runPart, tasks, runs, workflow } = useEditor()
  const problems = useProblems()
  const [picking, setPicking] = useState<Picked>()
  const { id } = node
  const task = tasks.get(node.task)
  const { set, errorAt, text } = useMembers(nodePath(id))
  const run = runs.get(id)
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
      {!readOnly && (
        <div className="flex flex-wrap gap-2">
          <Button small icon={Play} onClick={() => runPart({ only: id })} label={editorText.runNode} />
          <Button small icon={StepForward} onClick={() => runPart({ to: id })} label={editorText.runTo} />
          <PinResult node={node} />
        </div>
      )}
      <ProblemNotices problems={otherProblems(problems, id, members)} />
      {run && <NodeWait node={run} />}
      {run && <ResultPreview node={run} />}
      <NameField label={editorText.id} hint={editorText.idHint} value={id} commit={rename} />
      {text('displayName', 'name', node.name)}
      <PickerField
        label={editorText.task}
        disabled={readOnly}
        hint={task?.description}
        error={errorAt('task')}
        value={node.task}
        choices={[
          ...(task ? [] : [{ id: node.task, name: node.task || editorText.unknownTask }]),
          ...[...tasks.values()].map(({ id }) => taskOption(id)),
        ]}
        change={value => set('task', value)}
      />
      {(task?.needs_model !== false || node.model !== undefined) && (
        <PickerField
          label={editorText.model}
          disabled={readOnly}
          error={errorAt('model_id')}
          value={node.model ?? ''}
          none={editorText.noModel}
          choices={[...new Set([...(task?.models ?? []), ...(node.model === undefined ? [] : [node.model])])].map(
            model => modelOption(model),
          )}
          change={value => set('model_id', value || undefined)}
        />
      )}
      {task && <NodeInputs node={node} task={task} pick={setPicking} />}
      <NodeItems node={node} pick={() => setPicking('list')} />
      <NodeNote node={node} />
      <Order node={node} />
      <NodeSettings node={node} costs={task?.needs_model !== false || runsWorkflow(node)} />
      {picking && <ReferenceDialog node={id} picked={picking} close={() => setPicking(undefined)} />}
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
