import { useQuery } from '@tanstack/react-query'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { durationText } from '../../components/format.ts'
import { Notice, PageHeading, Queried, Section } from '../../components/page.tsx'
import { overviewText } from '../../text/overview.ts'
import { shellText } from '../../text/shell.ts'
import { Charts } from './charts.tsx'
import { Devices } from './devices.tsx'
import { RecentFailures } from './failures.tsx'
import { ModelQueues } from './model-queues.tsx'

/** Milliseconds between two readings. A hidden tab reads nothing. */
const everyMs = 2_000
const configurationEveryMs = 30_000

const total = (models: readonly Schema<'ModelLoad'>[], of: 'busy' | 'waiting'): number =>
  models.reduce((sum, one) => sum + one[of], 0)

/** What the whole machine does, for its owner. */
export function MachineCard() {
  const status = useQuery({
    queryKey: ['overview', 'status'],
    queryFn: () => dataOf(api.GET('/api/system/status')),
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
  const { data } = useQuery({
    queryKey: ['overview', 'configuration'],
    queryFn: () => dataOf(api.GET('/api/model-status')),
    select: ({ configuration }) => configuration,
    refetchInterval: configurationEveryMs,
  })
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
