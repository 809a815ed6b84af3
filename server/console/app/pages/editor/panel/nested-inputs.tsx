import { useWorkflowChoice } from '../../../api/workflow-choice.ts'
import { TextLink } from '../../../components/button.tsx'
import { PickerField } from '../../../components/picker-field.tsx'
import { editorText } from '../../../text/editor.ts'
import { problemAt } from '../document/diagnostics.ts'
import { nodePath, setValue } from '../document/edits.ts'
import { schemaOfParameters, workflowOptions } from '../document/nested.ts'
import { shapeOf } from '../document/schema.ts'
import { isRecord, type Parameter } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import { useStored } from '../use-nested.ts'
import type { NodeInputsProps } from './node-inputs.tsx'
import { ValueField } from './value-field.tsx'

/** The inputs of a node that runs a stored workflow: which one, and a field for each of its parameters. */
export function NestedInputs({ node, task, pick }: NodeInputsProps) {
  const { apply, readOnly } = useEditor()
  const problems = useProblems()
  const { page, isCut, typed } = useWorkflowChoice()
  const { id, inputs } = node
  const chosen = typeof inputs.workflow === 'string' ? inputs.workflow : ''
  const known = useStored(node)
  const parameters = known?.parameters as Readonly<Record<string, Parameter>> | null | undefined
  const schema = parameters ? schemaOfParameters(parameters) : undefined
  const values = isRecord(inputs.input) ? inputs.input : {}
  const { input_schema: root } = task
  return (
    <>
      <PickerField
        label={editorText.workflow}
        hint={editorText.nestedHint}
        error={problemAt(problems, nodePath(id), 'inputs.workflow')?.message}
        value={chosen}
        none={editorText.chooseWorkflow}
        choices={workflowOptions(page?.workflows ?? [], chosen, known)}
        typed={typed}
        isCut={isCut}
        disabled={readOnly}
        change={name => apply(setValue([...nodePath(id), 'inputs', 'workflow'], name))}
      />
      {known && (
        <TextLink
          href={`/workflows/${known.id}`}
          className="inline-block text-xs underline"
          label={editorText.openNested}
        />
      )}
      {schema ? (
        Object.entries(schema.properties ?? {}).map(([name, part]) => (
          <ValueField
            key={`${chosen} ${name}`}
            node={id}
            path={['input', name]}
            schema={part}
            root={schema}
            value={values[name]}
            pick={pick}
          />
        ))
      ) : (
        <ValueField
          node={id}
          path={['input']}
          schema={shapeOf(root, root).properties.input ?? {}}
          root={root}
          value={inputs.input}
          pick={pick}
        />
      )}
    </>
  )
}
