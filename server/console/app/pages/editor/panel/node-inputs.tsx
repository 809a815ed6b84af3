import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { problemAt } from '../document/diagnostics.ts'
import { nodePath, setValue } from '../document/edits.ts'
import { runsWorkflow } from '../document/nested.ts'
import { shapeOf, type TaskFacts } from '../document/schema.ts'
import type { Path, WorkflowNode } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import { NestedInputs } from './nested-inputs.tsx'
import { JsonField, ValueField } from './value-field.tsx'

export interface NodeInputsProps {
  node: WorkflowNode
  task: TaskFacts
  /** Opens the choice of a reference for this input. */
  pick: (path: Path) => void
}

/** The inputs of a node: those that are required or given, and the others when they are asked for. */
export function NodeInputs({ node, task, pick }: NodeInputsProps) {
  const { input_schema: schema } = task
  const { properties, required } = shapeOf(schema, schema)
  const isNested = runsWorkflow(node)
  const names = Object.keys(properties).filter(name => !isNested || name === 'version')
  const few = names.filter(name => required.includes(name) || node.inputs[name] !== undefined)
  const unknown = Object.keys(node.inputs).filter(name => properties[name] === undefined)
  const field = (name: string) =>
    node.task === 'wait/approval' && name === 'form' ? (
      <ApprovalForm key={name} node={node} />
    ) : (
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
      {isNested && <NestedInputs node={node} task={task} pick={pick} />}
      {[...few, ...unknown].map(field)}
      {more.length > 0 && <More count={more.length}>{() => more.map(field)}</More>}
    </section>
  )
}

/** What a person fills in who answers an approval: a JSON Schema, which no form of fields can hold. */
function ApprovalForm({ node: { id, inputs } }: { node: WorkflowNode }) {
  const { apply } = useEditor()
  const problem = problemAt(useProblems(), nodePath(id), 'inputs.form')
  return (
    <JsonField
      label="form"
      hint={editorText.approvalFormHint}
      error={problem?.message}
      value={inputs.form}
      set={form => apply(setValue([...nodePath(id), 'inputs', 'form'], form), `${id}\nform`)}
    />
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
