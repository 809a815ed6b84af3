import { Plus, Trash2 } from 'lucide-react'
import { Button, IconButton } from '../../../components/button.tsx'
import { optionsOf } from '../../../components/fields.tsx'
import { editorText } from '../../../text/editor.ts'
import { type Edit, removeParameter, renameParameter, setParameterType, setValue } from '../document/edits.ts'
import { freeId } from '../document/source.ts'
import type { Parameter } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import {
  ChoiceField,
  DraftArea,
  DraftField,
  linesOf,
  NameField,
  numberIn,
  ProblemNotices,
  PropertiesHeading,
} from './properties.tsx'
import { YamlField } from './value-field.tsx'

const regions = ['Global', 'US', 'EU']
const types = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'image', 'audio', 'video', 'file']

/** What is said of the workflow as a whole. */
export function WorkflowPanel() {
  const { workflow, apply } = useEditor()
  const problems = useProblems()
  const set = (field: string, value: unknown) => apply(setValue([field], value), field)
  const errorOf = (field: string) => problems.find(problem => !problem.node && problem.field === field)?.message
  return (
    <div className="space-y-4">
      <PropertiesHeading>{editorText.workflow}</PropertiesHeading>
      <DraftField
        label={editorText.name}
        value={workflow.name}
        error={errorOf('name')}
        commit={name => set('name', name)}
      />
      <DraftArea
        label={editorText.description}
        value={workflow.description}
        error={errorOf('description')}
        commit={text => set('description', text || undefined)}
      />
      <Parameters />
      <ChoiceField
        label={editorText.region}
        value={workflow.region}
        error={errorOf('region')}
        options={[...new Set([...regions, workflow.region])]}
        change={value => set('region', value === 'Global' ? undefined : value)}
      />
      <DraftField
        label={editorText.timeout}
        hint={editorText.timeoutHint}
        inputMode="numeric"
        value={String(workflow.timeout ?? '')}
        error={errorOf('timeout')}
        commit={text => set('timeout', numberIn(text))}
      />
      <ChoiceField
        label={editorText.onFailure}
        value={workflow.on_failure}
        options={optionsOf(editorText.onFailureChoices)}
        change={value => set('on_failure', value === 'fail_fast' ? undefined : value)}
      />
    </div>
  )
}

function Parameters() {
  const { workflow, apply, readOnly } = useEditor()
  const add = () => {
    const name = freeId(editorText.newParameter, new Set(workflow.parameters.map(one => one.name)))
    apply(setValue(['parameters', name], { type: 'string' }))
  }
  return (
    <section aria-label={editorText.parameters} className="space-y-3">
      <h3 className="font-medium">{editorText.parameters}</h3>
      <p className="text-muted text-xs">{editorText.parametersHint}</p>
      {workflow.parameters.map(({ name, parameter }, at) => (
        // A parameter keeps its place when its name changes, and the focus stays.
        <ParameterForm key={at} name={name} parameter={parameter} />
      ))}
      {!readOnly && <Button small icon={Plus} onClick={add} label={editorText.addParameter} />}
    </section>
  )
}

function ParameterForm({ name, parameter }: { name: string; parameter: Parameter }) {
  const { apply, readOnly } = useEditor()
  const problems = useProblems()
  const change = (edit: Edit, field: string) => apply(edit, `${name} ${field}`)
  const set = (field: string, value: unknown) => change(setValue(['parameters', name, field], value), field)
  const wrong = problems.filter(
    ({ field }) => field === `parameters.${name}` || field?.startsWith(`parameters.${name}.`),
  )
  const numeric = parameter.type === 'number' || parameter.type === 'integer'
  const bound = (field: 'minimum' | 'maximum') => (
    <DraftField
      label={editorText[field]}
      inputMode="decimal"
      value={String(parameter[field] ?? '')}
      commit={text => set(field, numberIn(text))}
    />
  )
  return (
    <fieldset className="border-line space-y-3 border-l-2 pl-3">
      <legend className="sr-only">{editorText.parameter(name)}</legend>
      <ProblemNotices problems={wrong} />
      <div className="flex items-end gap-2">
        <div className="flex-1">
          <NameField label={editorText.name} value={name} commit={next => apply(renameParameter(name, next))} />
        </div>
        <div className="w-28">
          <ChoiceField
            label={editorText.type}
            value={parameter.type}
            options={[...new Set([...types, parameter.type])]}
            change={type => change(setParameterType(name, type), 'type')}
          />
        </div>
        {!readOnly && (
          <IconButton
            icon={Trash2}
            danger
            label={editorText.removeParameter(name)}
            onClick={() => apply(removeParameter(name))}
          />
        )}
      </div>
      <DraftField
        label={editorText.description}
        value={parameter.description ?? ''}
        commit={text => set('description', text || undefined)}
      />
      <ChoiceField
        label={editorText.required}
        value={String(parameter.required ?? '')}
        options={optionsOf(editorText.requiredChoices)}
        change={value => set('required', { true: true, false: false }[value])}
      />
      {parameter.type === 'string' && typeof (parameter.default ?? '') === 'string' ? (
        <DraftField
          label={editorText.default}
          value={typeof parameter.default === 'string' ? parameter.default : ''}
          commit={text => set('default', text || undefined)}
        />
      ) : (
        <YamlField
          key={name}
          label={editorText.default}
          value={parameter.default}
          set={value => set('default', value)}
        />
      )}
      <DraftArea
        label={editorText.allowed}
        hint={editorText.allowedHint}
        value={(parameter.enum ?? []).map(String).join('\n')}
        commit={text => {
          const values = linesOf(text)
          set('enum', values.length === 0 ? undefined : values.map(value => (numeric ? numberIn(value) : value)))
        }}
      />
      {numeric && (
        <div className="grid grid-cols-2 gap-2">
          {bound('minimum')}
          {bound('maximum')}
        </div>
      )}
    </fieldset>
  )
}
