import { keepPreviousData } from '@tanstack/react-query'
import { api, type Schema, useAnswer } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { Empty, Queried } from '../../components/page.tsx'
import { PanelTable, RowLink, WithPanel } from '../../components/panel.tsx'
import { columnsOf } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { webhooksText } from '../../text/webhooks.ts'
import { DeliveryPanel, DeliveryState } from './delivery-panel.tsx'

const text = webhooksText.deliveries

type Delivery = Schema<'WebhookDelivery'>
const states = Object.keys(text.states) as Delivery['status'][]

/** Milliseconds between reads while a delivery waits. */
const pendingMs = 3_000

/** The status of the last answer, or why there was none. */
const answerOf = ({ status_code, error }: Delivery): string =>
  status_code === null ? (error ?? '–') : `${status_code}`

const allColumns = columnsOf<Delivery, keyof typeof text.columns>(text.columns, {
  event: ({ id, type }) => (
    <RowLink param="delivery" id={id}>
      {type}
    </RowLink>
  ),
  state: ({ status }) => <DeliveryState status={status} />,
  to: { aside: true, show: ({ url }) => <span className="break-all">{url}</span> },
  answer: answerOf,
  attempts: { number: true, aside: true, show: 'attempt' },
  created: ({ created_at }) => <Time at={created_at} />,
})
const ownColumns = allColumns.filter(({ name }) => name !== text.columns.to)

/** What was sent to an endpoint, or to all webhooks of the organization; newest first, with one of them beside the list. */
export function Deliveries({ webhook }: { webhook?: string }) {
  const [params, change] = useAddress()
  const status = states.find(one => one === params.get('state'))
  const after = params.get('after') ?? undefined
  const open = params.get('delivery') ?? undefined
  const query = useAnswer(
    ['webhooks', 'deliveries', webhook, status, after],
    () => api.GET('/api/webhook-deliveries', { params: { query: { limit: 50, webhook_id: webhook, status, after } } }),
    {
      placeholderData: keepPreviousData,
      refetchInterval: ({ state: { data } }) =>
        data?.deliveries.some(one => one.status === 'pending') ? pendingMs : false,
    },
  )
  useLiveRefresh(['job.', 'workflow_execution.', 'batch.'], ['webhooks', 'deliveries'])
  const close = () => change({ delivery: undefined })
  return (
    <WithPanel
      panel={
        open !== undefined &&
        query.data && (
          <DeliveryPanel key={open} delivery={query.data.deliveries.find(({ id }) => id === open)} close={close} />
        )
      }
    >
      {webhook === undefined && <p className="text-muted mb-3">{text.about}</p>}
      <div className="mb-3 w-44">
        <SelectField
          label={text.state}
          value={status ?? ''}
          none={text.any}
          change={state => change({ state, after: undefined, delivery: undefined })}
          options={optionsOf(text.states)}
        />
      </div>
      <Queried query={query} lines={5}>
        {({ deliveries, next_cursor }) => (
          <PanelTable
            label={text.title}
            param="delivery"
            columns={webhook === undefined ? allColumns : ownColumns}
            rows={deliveries}
            next={next_cursor}
            names={text}
          >
            <Empty title={status ? text.noMatch : text.none}>{!status && <p>{text.noneHelp}</p>}</Empty>
          </PanelTable>
        )}
      </Queried>
    </WithPanel>
  )
}
