import { Plus, Trash2 } from 'lucide-react'
import { Button, IconButton } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { removeParameter, renameParameter, setParameterType, setValue } from '../document/edits.ts'
import { freeId } from '../document/source.ts'
import type { Parameter } from '../document/workflow-document.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import {
  ChoiceField,
  DraftField,
  NameField,
  numberIn,
  ProblemNotices,
  PropertiesHeading,
  useMembers,
} from './properties.tsx'
import { YamlField } from './value-field.tsx'

const regions = ['Global', 'US', 'EU']
const types = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'image', 'audio', 'video', 'file']

/** What is said of the workflow as a whole. */
export function WorkflowPanel() {
  const { workflow } = useEditor()
  const { set, errorAt, area, number, lines, choice } = useMembers([])
  const { concurrency } = workflow
  return (
    <div className="space-y-4">
      <PropertiesHeading>{editorText.workflow}</PropertiesHeading>
      <DraftField
        label={editorText.name}
        value={workflow.name}
        error={errorAt('name')}
        commit={name => set('name', name)}
      />
      {area('description', 'description', workflow.description)}
      {lines('tags', 'tags', workflow.tags, tag => tag)}
      <Parameters />
      <ChoiceField
        label={editorText.region}
        value={workflow.region}
        error={errorAt('region')}
        options={[...new Set([...regions, workflow.region])]}
        change={value => set('region', value === 'Global' ? undefined : value)}
      />
      {number('timeout', 'timeout', workflow.timeout)}
      {number('budget', 'budget', workflow.budget, 'decimal')}
      {choice('onFailure', 'on_failure', workflow.on_failure, { fail_fast: undefined })}
      <DraftField
        label={editorText.concurrency}
        hint={editorText.concurrencyHint}
        error={errorAt('concurrency.limit')}
        inputMode="numeric"
        value={String(concurrency?.limit ?? '')}
        commit={text => {
          const limit = numberIn(text)
          set(limit === undefined ? 'concurrency' : 'concurrency.limit', limit)
        }}
      />
      {concurrency &&
        choice('whenReached', 'concurrency.when_reached', concurrency.when_reached ?? 'queue', { queue: undefined })}
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
  const { set, errorAt, text, number, lines, choice } = useMembers(['parameters', name])
  const wrong = problems.filter(({ node, field }) => node === undefined && field === `parameters.${name}`)
  const numeric = parameter.type === 'number' || parameter.type === 'integer'
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
            error={errorAt('type')}
            options={[...new Set([...types, parameter.type])]}
            change={type => apply(setParameterType(name, type), `${name} type`)}
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
      {text('description', 'description', parameter.description)}
      {choice('required', 'required', String(parameter.required ?? ''), {
        '': undefined,
        true: true,
        false: false,
      })}
      {parameter.type === 'string' && typeof (parameter.default ?? '') === 'string' ? (
        text('default', 'default', typeof parameter.default === 'string' ? parameter.default : undefined)
      ) : (
        <YamlField
          key={name}
          label={editorText.default}
          error={errorAt('default')}
          value={parameter.default}
          set={value => set('default', value)}
        />
      )}
      {lines('allowed', 'enum', parameter.enum ?? [], numeric ? numberIn : value => value)}
      {numeric && (
        <div className="grid grid-cols-2 gap-2">
          {number('minimum', 'minimum', parameter.minimum, 'decimal')}
          {number('maximum', 'maximum', parameter.maximum, 'decimal')}
        </div>
      )}
    </fieldset>
  )
}
