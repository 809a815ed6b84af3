import { useState } from 'react'
import type { Schema } from '../../api/client.ts'
import { FormDialog } from '../../components/dialog.tsx'
import { Checkbox, nameField, TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { webhooksText } from '../../text/webhooks.ts'
import { EventChoice } from './event-choice.tsx'

const text = webhooksText.form

interface WebhookFormProps {
  title: string
  action: string
  /** The endpoint to change; absent for a new one. */
  webhook?: Schema<'WebhookEndpoint'>
  save: (fields: Schema<'WebhookCreate'>) => Promise<unknown>
  close: () => void
}

/** The fields of an endpoint, new or existing. */
export function WebhookForm({ title, action, webhook, save, close }: WebhookFormProps) {
  const [types, setTypes] = useState<readonly string[]>(webhook?.event_types ?? ['job.completed', 'job.failed'])
  const [isEmpty, setEmpty] = useState(false)
  const check = async (form: FormData) => {
    setEmpty(types.length === 0)
    if (types.length === 0) return
    await save({
      name: formText(form, 'name'),
      url: formText(form, 'url'),
      event_types: [...types],
      enabled: form.has('enabled'),
    })
  }
  return (
    <FormDialog title={title} action={action} save={check} close={close}>
      {faultOf => (
        <>
          <TextField
            label={webhooksText.name}
            hint={text.nameHint}
            {...nameField}
            defaultValue={webhook?.name}
            error={faultOf('name')}
          />
          <TextField
            label={text.url}
            hint={text.urlHint}
            name="url"
            type="url"
            required
            maxLength={2_048}
            placeholder="https://"
            autoComplete="off"
            defaultValue={webhook?.url}
            error={faultOf('url')}
          />
          <EventChoice
            chosen={types}
            change={next => {
              setTypes(next)
              setEmpty(false)
            }}
            error={isEmpty ? text.noEvent : faultOf('event_types')}
          />
          <Checkbox label={text.enabled} name="enabled" defaultChecked={webhook?.enabled ?? true} />
        </>
      )}
    </FormDialog>
  )
}
