import { RotateCw } from 'lucide-react'
import { api, at, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { CodeBlock, CopyText } from '../../components/code.tsx'
import { durationText, indentedJson } from '../../components/format.ts'
import { Facts, Notice } from '../../components/page.tsx'
import { SidePanel } from '../../components/panel.tsx'
import { Time } from '../../components/time.tsx'
import { webhooksText } from '../../text/webhooks.ts'

const text = webhooksText.deliveries

type Delivery = Schema<'WebhookDelivery'>

const kinds = { pending: 'active', delivered: 'good', dead: 'bad' } as const

/** How far a delivery is, in a word. */
export const DeliveryState = ({ status }: Pick<Delivery, 'status'>) => (
  <Badge kind={kinds[status]}>{text.states[status]}</Badge>
)

interface DeliveryPanelProps {
  /** Undefined if the page of the list does not have it. */
  delivery: Delivery | undefined
  close: () => void
}

/** One delivery: its message, and the last answer. */
export function DeliveryPanel({ delivery, close }: DeliveryPanelProps) {
  return (
    <SidePanel
      label={text.panel}
      title={delivery?.type ?? text.panel}
      about={delivery && <DeliveryState status={delivery.status} />}
      closeLabel={text.close}
      close={close}
    >
      {delivery ? <Shown delivery={delivery} /> : <Notice kind="info">{text.notListed}</Notice>}
    </SidePanel>
  )
}

function Shown({ delivery }: { delivery: Delivery }) {
  const { id, webhook_id, url, event_id, error, request_body, response_body } = delivery
  const { can } = useSession()
  const { mutate, isPending } = useAction(
    () => dataOf(api.POST('/api/webhook-deliveries/{delivery}/redeliver', at({ delivery: id }))),
    () => text.sentAgain,
    ['webhooks', 'deliveries'],
  )
  const time = (at: number | null) => at !== null && <Time at={at} />
  return (
    <div className="space-y-4">
      {can('admin:write') && <Button icon={RotateCw} busy={isPending} onClick={() => mutate()} label={text.again} />}
      <Facts
        rows={[
          [
            text.facts.to,
            <span key="to" className="break-all">
              {url}
            </span>,
          ],
          [text.facts.status, delivery.status_code],
          [text.facts.error, error],
          [text.facts.attempts, delivery.attempt],
          [text.facts.attempted, time(delivery.attempted_at)],
          [text.facts.took, delivery.duration_ms !== null && durationText(delivery.duration_ms)],
          [text.facts.next, time(delivery.next_attempt_at)],
          [text.facts.ended, time(delivery.finished_at)],
          [text.facts.created, time(delivery.created_at)],
          [text.facts.message, <CopyText key="id">{id}</CopyText>],
          [text.facts.event, <CopyText key="event">{event_id}</CopyText>],
          ['', webhook_id === null && text.ofRequest],
        ]}
      />
      <Body title={text.request} body={request_body} />
      <Body title={text.response} body={response_body} />
    </div>
  )
}

/** What was sent or answered; nothing if it is empty or not kept. */
const Body = ({ title, body }: { title: string; body: string | null }) =>
  body && (
    <div>
      <h3 className="mb-1 font-medium">{title}</h3>
      <CodeBlock code={indentedJson(body)} label={title} />
    </div>
  )
