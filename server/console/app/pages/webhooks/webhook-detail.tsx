import { Send } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, dataOf, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Confirm, FormDialog } from '../../components/dialog.tsx'
import { SelectField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { durationText } from '../../components/format.ts'
import { BackLink, Facts, Notice, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { showSecret } from '../../components/shown-secret.tsx'
import { Time } from '../../components/time.tsx'
import { asLeft } from '../../components/way-back.ts'
import { webhooksText as text } from '../../text/webhooks.ts'
import { Deliveries } from './deliveries.tsx'
import { useEventTypes } from './event-choice.tsx'
import { isChosen } from './event-groups.ts'
import { RotateSecret } from './rotate-secret.tsx'
import { WebhookForm } from './webhook-form.tsx'

type Webhook = Schema<'WebhookEndpoint'>
type Action = 'test' | 'change' | 'rotate' | 'remove'

/** Whether events are sent to an endpoint, in a word. */
export const WebhookState = ({ webhook: { enabled, disabled_reason } }: { webhook: Webhook }) => (
  <Badge kind={enabled ? 'good' : disabled_reason === 'gone' ? 'bad' : 'plain'}>
    {text.states[enabled ? 'enabled' : (disabled_reason ?? 'disabled')]}
  </Badge>
)

/** One endpoint: what can be done with it, and what was sent to it. */
export function WebhookDetail({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['webhooks', 'one', id], () => api.GET('/api/webhooks/{id}', at({ id })), {
    // A receiver may end it with its answer.
    refetchInterval: 5_000,
  })
  return (
    <>
      <BackLink page="webhooks" />
      <Queried query={query} lines={6} gone={text.gone}>
        {({ webhook }) => <Shown webhook={webhook} />}
      </Queried>
    </>
  )
}

function Shown({ webhook }: { webhook: Webhook }) {
  const { id, name, url, event_types, enabled, signing_secret_hint, previous_secret_until } = webhook
  const { can } = useSession()
  const [dialog, setDialog] = useState<Action>()
  const { mutate: turn, isPending: isTurning } = useAction(
    () => dataOf(api.PATCH('/api/webhooks/{id}', { ...at({ id }), body: { enabled: !enabled } })),
    () => (enabled ? text.disabled(name) : text.enabled(name)),
    ['webhooks'],
  )
  const button = (action: Action, facts: { danger?: boolean; icon?: typeof Send } = {}) => (
    <Button {...facts} onClick={() => setDialog(action)} label={text[action]} />
  )
  return (
    <>
      <PageHeading
        title={name}
        name={name}
        badge={<WebhookState webhook={webhook} />}
        actions={
          can('admin:write') && (
            <>
              {button('test', { icon: Send })}
              {button('change')}
              <Button busy={isTurning} onClick={() => turn()} label={enabled ? text.disable : text.enable} />
              {button('rotate')}
              {button('remove', { danger: true })}
            </>
          )
        }
      />
      <div className="mb-6">
        <Facts
          rows={[
            [
              text.facts.url,
              <span key="url" className="break-all">
                {url}
              </span>,
            ],
            [text.facts.events, event_types.join(', ')],
            [
              text.facts.secret,
              <code key="secret" className="font-mono">
                {signing_secret_hint}
              </code>,
            ],
            [text.facts.previous, previous_secret_until !== null && <Time at={previous_secret_until} />],
          ]}
        />
      </div>
      <Section title={text.deliveries.title}>
        <Deliveries webhook={id} />
      </Section>
      {dialog && <ActionDialog action={dialog} webhook={webhook} close={() => setDialog(undefined)} />}
    </>
  )
}

interface ActionDialogProps {
  action: Action
  webhook: Webhook
  close: () => void
}

function ActionDialog({ action, webhook, close }: ActionDialogProps) {
  const { id, name } = webhook
  const [, go] = useLocation()
  const params = { path: { id } }
  if (action === 'test') return <TestDialog webhook={webhook} close={close} />
  if (action === 'change')
    return (
      <WebhookForm
        title={text.changeTitle(name)}
        action={text.save}
        webhook={webhook}
        close={close}
        save={async body => {
          await dataOf(api.PATCH('/api/webhooks/{id}', { params, body }))
          void refresh('webhooks')
          announce('good', text.saved(body.name))
          close()
        }}
      />
    )
  if (action === 'rotate')
    return (
      <RotateSecret
        name={name}
        close={close}
        rotate={async body => {
          const { signing_secret: secret } = await dataOf(api.POST('/api/webhooks/{id}/rotate', { params, body }))
          showSecret({ name, secret })
          void refresh('webhooks')
        }}
      />
    )
  return (
    <Confirm
      title={text.removeTitle(name)}
      action={text.removeAct}
      close={close}
      act={async () => {
        await dataOf(api.DELETE('/api/webhooks/{id}', { params }))
        announce('good', text.removed(name))
        go(asLeft('/webhooks'))
        void refresh('webhooks', 'list')
      }}
    >
      {text.removeText}
    </Confirm>
  )
}

/** Sends a test message and says what came of it. */
function TestDialog({ webhook: { id, name, event_types: chosen }, close }: Omit<ActionDialogProps, 'action'>) {
  const [result, setResult] = useState<Schema<'WebhookTested'>>()
  const { data } = useEventTypes()
  const offered = (data?.data ?? []).filter(type => isChosen(chosen, type))
  return (
    <FormDialog
      title={text.testTitle(name)}
      action={text.test}
      about={
        <>
          <p>{text.testText}</p>
          {result && (
            <Notice kind={result.success ? 'good' : 'bad'}>
              {result.success
                ? text.tested(result.status_code, durationText(result.duration_ms))
                : text.testFailed(result.error ?? '')}
            </Notice>
          )}
        </>
      }
      close={close}
      save={async form => {
        setResult(undefined)
        const body = { event_type: formText(form, 'event_type') }
        setResult(await dataOf(api.POST('/api/webhooks/{id}/test', { ...at({ id }), body })))
      }}
    >
      {faultOf => (
        <SelectField
          label={text.testType}
          name="event_type"
          options={offered.length > 0 ? offered : chosen}
          error={faultOf('event_type')}
        />
      )}
    </FormDialog>
  )
}
