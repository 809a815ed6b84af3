import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { parse, stringify } from 'yaml'
import { api, dataOf, paramOf, type Schema } from '../../../api/client.ts'
import { Dialog, FormButtons } from '../../../components/dialog.tsx'
import { SelectField, TextArea } from '../../../components/fields.tsx'
import { Failed } from '../../../components/page.tsx'
import { editorText } from '../../../text/editor.ts'
import { valueLinksOf } from '../document/references.ts'
import type { Parameter } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'

/** The workflow that is run: a stored version, or the text as it is shown. */
export type Runnable = { id: string; version: number } | { value: Record<string, unknown> }

/** Asks for the parameters and starts an execution. */
export function RunDialog({
  runnable,
  close,
  started,
}: {
  runnable: Runnable
  close: () => void
  started: (id: string) => void
}) {
  const { workflow } = useEditor()
  const declared = new Map(workflow.parameters.map(({ name, parameter }) => [name, parameter]))
  for (const { from, output } of valueLinksOf(workflow))
    if (from === undefined && !declared.has(output)) declared.set(output, { type: 'string' })
  const [values, setValues] = useState<Record<string, string>>({})
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => start(runnable, valuesOf(values, declared)),
    onSuccess: id => {
      started(id)
      close()
    },
  })
  const param = paramOf(error)
  return (
    <Dialog title={editorText.runTitle} close={close}>
      {'value' in runnable && <p className="text-muted">{editorText.runUnsaved}</p>}
      <form
        className="space-y-4"
        onSubmit={event => {
          event.preventDefault()
          mutate()
        }}
      >
        {[...declared].map(([name, parameter]) => (
          <ParameterField
            key={name}
            label={name}
            parameter={parameter}
            value={values[name] ?? defaultText(parameter)}
            error={param === `input_params.${name}` ? error?.message : undefined}
            change={value => setValues(now => ({ ...now, [name]: value }))}
          />
        ))}
        {error && !param?.startsWith('input_params.') && <Failed failure={error} />}
        <FormButtons action={editorText.start} busy={isPending} close={close} />
      </form>
    </Dialog>
  )
}

function ParameterField({
  parameter: { type, description, enum: allowed },
  ...rest
}: {
  label: string
  parameter: Parameter
  value: string
  error: string | undefined
  change: (value: string) => void
}) {
  const hint = description ? `${description} (${type})` : type
  const choices = type === 'boolean' ? ['true', 'false'] : allowed?.map(String)
  if (choices)
    return <SelectField {...rest} hint={hint} options={[{ value: '', name: editorText.byDefault }, ...choices]} />
  return <TextArea {...rest} hint={hint} rows={2} />
}

const defaultText = ({ default: value }: Parameter): string =>
  value === undefined ? '' : typeof value === 'string' ? value : stringify(value).trimEnd()

/** The typed values; an empty field is not sent, so that its default is used or the server asks for it. */
function valuesOf(texts: Record<string, string>, declared: ReadonlyMap<string, Parameter>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([name, text]) => {
      const type = declared.get(name)?.type
      if (text === '') return []
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

async function start(runnable: Runnable, input_params: Record<string, unknown>): Promise<string> {
  if ('id' in runnable) {
    const { id, version } = runnable
    const begun = api.POST('/api/workflows/{id}/execute', { params: { path: { id } }, body: { input_params, version } })
    return (await dataOf(begun)).execution.id
  }
  const { dag, ...fields } = runnable.value
  const given = ['parameters', 'name', 'on_failure', 'timeout', 'region'].map(name => [name, fields[name] ?? undefined])
  const body = { ...Object.fromEntries(given), dag, input_params } as Schema<'RunWorkflow'>
  return (await dataOf(api.POST('/api/workflows/run', { body }))).execution.id
}
