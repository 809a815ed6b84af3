import { useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, dataOf, type Schema, useAnswer } from '../../api/client.ts'
import { ownUrl } from '../../components/addresses.ts'
import { useAction } from '../../components/announcements.tsx'
import { Button, TextLink } from '../../components/button.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../components/fields.tsx'
import { BackLink, Facts, Notice, PageHeading, Queried, useBeginning } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { asLeft } from '../../components/way-back.ts'
import { approvalsText as text } from '../../text/approvals.ts'
import { ApprovalContext } from './approval-context.tsx'

type Approval = Schema<'Approval'>
type FormField = NonNullable<Approval['form']>['properties'][string]
/** The value of a field; undefined while it is empty. */
type FieldValue = string | number | boolean | undefined

/** One approval: what is asked, its form, and the buttons that answer it. */
export function ApprovalDetail({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['approvals', 'one', id], () => api.GET('/api/approvals/{id}', at({ id })))
  return (
    <>
      <BackLink page="approvals" />
      <Queried query={query} lines={6} gone={text.gone}>
        {({ approval }) => <Shown approval={approval} />}
      </Queried>
    </>
  )
}

function Shown({ approval }: { approval: Approval }) {
  const {
    title,
    text: asked,
    images,
    workflow_name,
    execution_id,
    node_id,
    item,
    approvers,
    timeout_at,
    url,
  } = approval
  return (
    <>
      <PageHeading title={title} about={workflow_name} />
      <div className="max-w-2xl space-y-4">
        {asked !== null && <p className="break-words whitespace-pre-wrap">{asked}</p>}
        {images.map((image, position) => (
          <img key={image} src={ownUrl(image)} alt={text.image(position)} className="max-w-full rounded-md" />
        ))}
        {approval.may_answer ? <AnswerForm approval={approval} /> : <Notice kind="info">{text.notYours}</Notice>}
        <Facts
          className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1"
          rows={[
            [text.execution, <TextLink key="execution" href={`/executions/${execution_id}`} label={execution_id} />],
            [text.node, text.nodeOf(node_id, item)],
            [text.until, timeout_at !== null && <Time at={timeout_at} />],
            [text.approvers, approvers?.join(', ')],
            [
              text.page,
              url !== null && (
                <a href={ownUrl(url)} className="text-accent break-all hover:underline">
                  {ownUrl(url)}
                </a>
              ),
            ],
          ]}
        />
        <ApprovalContext approval={approval} />
      </div>
    </>
  )
}

/** The fields of the form, a comment, and the two answers. */
function AnswerForm({ approval: { execution_id: id, node_id: node, item, form } }: { approval: Approval }) {
  const [, go] = useLocation()
  const fields = Object.entries(form?.properties ?? {})
  const [values, setValues] = useState<Readonly<Record<string, FieldValue>>>(() =>
    Object.fromEntries(
      fields.flatMap(([name, { type, default: first }]) =>
        first === undefined ? (type === 'boolean' ? [[name, false]] : []) : [[name, first]],
      ),
    ),
  )
  const [comment, setComment] = useState('')
  const { mutate, isPending } = useAction(
    (approved: boolean) =>
      dataOf(
        api.POST('/api/workflow-executions/{id}/nodes/{node}/resolve', {
          ...at({ id, node }),
          body: {
            approved,
            ...(item === null ? {} : { item }),
            ...(approved && form ? { answer: values } : {}),
            ...(comment.trim() === '' ? {} : { comment: comment.trim() }),
          },
        }),
      ),
    (_, approved) => {
      go(asLeft('/approvals'))
      return approved ? text.approved : text.rejected
    },
    ['approvals'],
  )
  const change = (name: string, value: FieldValue) =>
    // An absent member is left out of the JSON.
    setValues(before => ({ ...before, [name]: value }))
  return (
    <form
      className="space-y-4"
      onSubmit={event => {
        event.preventDefault()
        mutate(true)
      }}
    >
      {fields.map(([name, field]) => (
        <AnswerField
          key={name}
          name={name}
          field={field}
          required={form?.required?.includes(name) === true}
          value={values[name]}
          change={value => change(name, value)}
        />
      ))}
      <TextArea label={text.comment} value={comment} change={setComment} rows={2} maxLength={4_000} />
      <div className="flex gap-2">
        <Button primary type="submit" busy={isPending} label={text.approve} />
        <Button busy={isPending} onClick={() => mutate(false)} label={text.reject} />
      </div>
    </form>
  )
}

interface AnswerFieldProps {
  name: string
  field: FormField
  required: boolean
  value: FieldValue
  change: (value: FieldValue) => void
}

/** The control of one field. */
function AnswerField({ name, field, required, value, change }: AnswerFieldProps) {
  const { type = 'string', title = name, description, enum: allowed, format } = field
  const facts = { label: title, required, ...(description === undefined ? {} : { hint: description }) }
  const shown = value === undefined ? '' : String(value)
  if (allowed)
    return (
      <SelectField
        {...facts}
        value={shown}
        none="–"
        options={allowed.map(String)}
        change={chosen => change(allowed.find(one => String(one) === chosen))}
      />
    )
  if (type === 'boolean') return <Checkbox {...facts} required={false} checked={value === true} change={change} />
  if (type !== 'string')
    return (
      <TextField
        {...facts}
        type="number"
        step={type === 'integer' ? 1 : 'any'}
        min={field.minimum}
        max={field.maximum}
        value={shown}
        change={written => change(written === '' ? undefined : Number(written))}
      />
    )
  const texts = {
    ...facts,
    value: shown,
    maxLength: field.maxLength,
    change: (written: string) => change(written || undefined),
  }
  return format === 'multiline' ? <TextArea {...texts} /> : <TextField {...texts} />
}
