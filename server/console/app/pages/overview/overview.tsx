import { api, type Schema, useSession } from '../../api/client.ts'
import { useAnswer } from '../../api/queries.ts'
import { durationText } from '../../components/format.ts'
import { ModelLink, ModelStateView } from '../../components/model.tsx'
import { Notice, PageHeading, Queried, Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { overviewText } from '../../text/overview.ts'
import { shellText } from '../../text/shell.ts'
import { Charts } from './charts.tsx'
import { Devices } from './devices.tsx'
import { RecentFailures } from './failures.tsx'
import { ModelQueues } from './model-queues.tsx'

export default function Overview() {
  const { can, session } = useSession()
  return session.owns_machine && can('admin:read') ? <MachineCard /> : <OwnModels />
}

const { columns: names } = overviewText

const columns: readonly Column<Schema<'ModelStatus'>>[] = [
  { name: names.model, show: ({ model_id: id }) => <ModelLink id={id} /> },
  { name: names.state, show: ModelStateView },
  {
    name: names.queue,
    show: ({ queue_depth: waiting }) =>
      waiting === 0 ? (
        <span className="text-muted">{overviewText.nothingWaits}</span>
      ) : (
        overviewText.waiting(waiting, 0)
      ),
  },
]

/** The models that a session may use, for those who do not own the machine. */
function OwnModels() {
  const query = useAnswer(['overview', 'models'], () => api.GET('/api/model-status'), { refetchInterval: 5_000 })
  return (
    <>
      <PageHeading title={shellText.pages.overview}>{overviewText.ownOnly}</PageHeading>
      <Section title={overviewText.models}>
        <Queried query={query}>
          {({ models }) => (
            <Table label={overviewText.models} columns={columns} rows={models} rowKey={({ model_id: id }) => id} />
          )}
        </Queried>
      </Section>
      <RecentFailures />
    </>
  )
}

/** Milliseconds between two readings. A hidden tab reads nothing. */
const everyMs = 2_000
const configurationEveryMs = 30_000

const total = (models: readonly Schema<'ModelLoad'>[], of: 'busy' | 'waiting'): number =>
  models.reduce((sum, one) => sum + one[of], 0)

/** What the whole machine does, for its owner. */
function MachineCard() {
  const status = useAnswer(['overview', 'status'], () => api.GET('/api/system/status'), {
    refetchInterval: everyMs,
    staleTime: 0,
  })
  const { data: now } = status
  return (
    <>
      <PageHeading title={shellText.pages.overview}>
        {now
          ? `${overviewText.summary(now.version, durationText(Math.max(0, now.time - now.started_at) * 1_000))}. ${overviewText.work(total(now.models, 'busy'), total(now.models, 'waiting'))}.`
          : '\u00a0'}
      </PageHeading>
      <ConfigurationNotice />
      <Queried query={status} lines={8}>
        {({ devices, engines, models }) => (
          <>
            <Section title={overviewText.devices}>
              <Devices devices={devices} engines={engines} />
            </Section>
            <Section title={overviewText.models}>
              <ModelQueues models={models} />
            </Section>
          </>
        )}
      </Queried>
      <Charts />
      <RecentFailures />
    </>
  )
}

/** Says when the configuration file is not what the server runs with. */
function ConfigurationNotice() {
  const query = useAnswer(['overview', 'configuration'], () => api.GET('/api/model-status'), {
    refetchInterval: configurationEveryMs,
  })
  const data = query.data?.configuration
  if (data?.fault)
    return (
      <Notice kind="bad" className="mb-4">
        {overviewText.fault(data.fault)}
      </Notice>
    )
  if (data && data.restart_for.length > 0)
    return (
      <Notice kind="warning" className="mb-4">
        {overviewText.restart(data.restart_for.join(', '))}
      </Notice>
    )
  return null
}
