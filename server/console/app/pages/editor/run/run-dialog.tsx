import { parse, stringify } from 'yaml'
import { api, dataOf, type Schema } from '../../../api/client.ts'
import { FormDialog } from '../../../components/dialog.tsx'
import { SelectField, TextArea } from '../../../components/fields.tsx'
import { editorText } from '../../../text/editor.ts'
import { valueLinksOf } from '../document/references.ts'
import type { Parameter } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

/** The workflow that is run: a stored version, or the text as it is shown. */
export type Runnable = { id: string; version: number } | { value: Record<string, unknown> }

interface RunDialogProps {
  runnable: Runnable
  close: () => void
  started: (id: string) => void
}

/** Asks for the parameters and starts an execution. */
export function RunDialog({ runnable, close, started }: RunDialogProps) {
  const { workflow } = useEditor()
  const declared = new Map(workflow.parameters.map(({ name, parameter }) => [name, parameter]))
  for (const { from, output } of valueLinksOf(workflow))
    if (from === undefined && !declared.has(output)) declared.set(output, { type: 'string' })
  const save = async (form: FormData) => {
    started(await start(runnable, valuesOf(form, declared)))
    close()
  }
  return (
    <FormDialog
      title={editorText.runTitle}
      action={editorText.start}
      about={'value' in runnable && <p className="text-muted">{editorText.runUnsaved}</p>}
      save={save}
      close={close}
    >
      {faultOf =>
        [...declared].map(([name, parameter]) => (
          <ParameterField key={name} name={name} parameter={parameter} error={faultOf(`input_params.${name}`)} />
        ))
      }
    </FormDialog>
  )
}

function ParameterField({ parameter, ...rest }: { name: string; parameter: Parameter; error: string | undefined }) {
  const { type, description, enum: allowed } = parameter
  const choices = type === 'boolean' ? ['true', 'false'] : allowed?.map(String)
  const facts = {
    ...rest,
    label: rest.name,
    hint: description ? `${description} (${type})` : type,
    defaultValue: defaultText(parameter),
  }
  if (choices) return <SelectField {...facts} none={editorText.byDefault} options={choices} />
  return <TextArea {...facts} rows={2} />
}

const defaultText = ({ default: value }: Parameter): string =>
  value === undefined ? '' : typeof value === 'string' ? value : stringify(value).trimEnd()

/** What differs from the defaults, as values of their types; an empty field is not sent, so that the server asks for it. */
function valuesOf(form: FormData, declared: ReadonlyMap<string, Parameter>): Record<string, unknown> {
  return Object.fromEntries(
    [...declared].flatMap(([name, parameter]) => {
      const { type } = parameter
      const text = form.get(name)
      if (typeof text !== 'string' || text === '' || text === defaultText(parameter)) return []
      const plain = type === 'string' || type === 'image' || type === 'audio' || type === 'video' || type === 'file'
      return [[name, plain ? text : parsed(text)]]
    }),
  )
}

function parsed(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return text
  }
}

/** Starts an execution in which the pins of the workflow count, because they are made for the editor. */
async function start(runnable: Runnable, input_params: Record<string, unknown>): Promise<string> {
  if ('id' in runnable) {
    const { id, version } = runnable
    const body = { input_params, version, use_pins: true }
    const begun = api.POST('/api/workflows/{id}/execute', { params: { path: { id } }, body })
    return (await dataOf(begun)).execution.id
  }
  const { dag, ...fields } = runnable.value
  const given = ['parameters', 'name', 'tags', 'on_failure', 'timeout', 'budget', 'region'].map(name => [
    name,
    fields[name] ?? undefined,
  ])
  const body = { ...Object.fromEntries(given), dag, input_params, use_pins: true } as Schema<'RunWorkflow'>
  return (await dataOf(api.POST('/api/workflows/run', { body }))).execution.id
}
