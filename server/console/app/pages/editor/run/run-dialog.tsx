import { parse, stringify } from 'yaml'
import { api, at, dataOf, type Schema } from '../../../api/client.ts'
import { FormDialog } from '../../../components/dialog.tsx'
import { SelectField, TextArea } from '../../../components/fields.tsx'
import { Notice } from '../../../components/page.tsx'
import { editorText } from '../../../text/editor.ts'
import { type Part, parametersFor, planOf } from '../document/selection.ts'
import type { Parameter } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

/** What is run: a stored version, or the text as it is shown; the whole, or a part of it. */
export type Runnable = ({ id: string; version: number } | { value: Record<string, unknown> }) & {
  part?: Part | undefined
}

interface RunDialogProps {
  runnable: Runnable
  close: () => void
  started: (id: string) => void
}

/** Asks for the parameters and starts an execution. */
export function RunDialog({ runnable, close, started }: RunDialogProps) {
  const { workflow, execution, runs } = useEditor()
  const { part } = runnable
  const plan = planOf(workflow, part)
  const { pinned } = plan
  // What the last run has made stands in for what does not run now.
  const given = plan.missing.filter(id => execution !== undefined && runs.get(id)?.status === 'completed')
  const missing = plan.missing.filter(id => !given.includes(id))
  const declared = parametersFor(workflow, part, plan)
  const save = async (form: FormData) => {
    const pins = await resultsOf(execution, given)
    started(await start(runnable, valuesOf(form, declared), pins))
    close()
  }
  const title = !part
    ? editorText.runTitle
    : 'only' in part
      ? editorText.runNodeTitle(part.only)
      : editorText.runToTitle(part.to)
  return (
    <FormDialog
      title={title}
      action={editorText.start}
      about={
        <>
          {'value' in runnable && <p className="text-muted">{editorText.runUnsaved}</p>}
          {pinned.length > 0 && <p>{editorText.runPinned(pinned.join(', '))}</p>}
          {given.length > 0 && <p>{editorText.runGiven(given.join(', '))}</p>}
          {missing.length > 0 && <Notice kind="warning">{editorText.runMissing(missing.join(', '))}</Notice>}
        </>
      }
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

type Results = Record<string, unknown>

/** The whole results of nodes: lists of nodes leave out parts of them. */
async function resultsOf(execution: string | undefined, ids: readonly string[]): Promise<Results> {
  const read = async (id: string) => {
    const call = api.GET('/api/workflow-executions/{id}/nodes/{node}', at({ id: execution!, node: id }))
    return [id, (await dataOf(call)).node.result] as const
  }
  return Object.fromEntries(await Promise.all(ids.map(read)))
}

/** Starts an execution in which the pins of the workflow count, because they are made for the editor. */
async function start(runnable: Runnable, input_params: Record<string, unknown>, pins: Results): Promise<string> {
  const { part } = runnable
  const selection = {
    ...(part && ('only' in part ? { only: [part.only] } : { to: part.to })),
    ...(Object.keys(pins).length > 0 ? { pins } : {}),
    use_pins: true,
  }
  if ('id' in runnable) {
    const { id, version } = runnable
    const body = { input_params, version, ...selection }
    const begun = api.POST('/api/workflows/{id}/execute', { params: { path: { id } }, body })
    return (await dataOf(begun)).execution.id
  }
  const { dag, ...fields } = runnable.value
  const given = ['parameters', 'name', 'tags', 'on_failure', 'timeout', 'budget', 'region'].map(name => [
    name,
    fields[name] ?? undefined,
  ])
  const body = { ...Object.fromEntries(given), dag, input_params, ...selection } as Schema<'RunWorkflow'>
  return (await dataOf(api.POST('/api/workflows/run', { body }))).execution.id
}
