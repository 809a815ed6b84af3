import { isFailing } from '../../api/attention.ts'
import { api, type Schema, useAnswer, useMachine, useSession } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { modelHref } from '../../components/addresses.ts'
import { TextLink } from '../../components/button.tsx'
import { decimalText, durationText, knownDuration, serverText } from '../../components/format.ts'
import { TaskLabel } from '../../components/marks.tsx'
import { ModelActions, ModelLink, ModelStateView } from '../../components/model.tsx'
import { Below, Empty, PageHeading, Queried, Section } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { modelText } from '../../text/models.ts'
import { overviewText } from '../../text/overview.ts'
import { shellText } from '../../text/shell.ts'
import { AttentionList } from './attention.tsx'
import { Charts } from './charts.tsx'
import { Devices } from './devices.tsx'
import { FirstSteps } from './first-steps.tsx'
import { GpuSetup } from './gpu-setup.tsx'
import { Peers } from './peers.tsx'
import { Pools } from './pools.tsx'

export default function Overview() {
  const { ownerCan } = useSession()
  return ownerCan('admin:read') ? <MachineCard /> : <OwnModels />
}

const columns: readonly Column<Schema<'ModelStatus'>>[] = columnsOf(overviewText.columns, {
  model: ({ model_id: id }) => <ModelLink id={id} />,
  state: ModelStateView,
  queue: ({ queue_depth: waiting }) =>
    waiting === 0 ? <span className="text-muted">{overviewText.nothingWaits}</span> : overviewText.waiting(waiting, 0),
})

/** The models that a session may use, for those who do not own the machine. */
function OwnModels() {
  const query = useAnswer(['overview', 'models'], () => api.GET('/api/model-status'), { refetchInterval: 5_000 })
  return (
    <>
      <PageHeading title={shellText.pages.overview} about={overviewText.ownOnly} />
      <AttentionList />
      {query.data && <FirstSteps models={query.data.models} />}
      <Section title={overviewText.models}>
        <Queried query={query}>
          {({ models }) => <Table label={overviewText.models} columns={columns} rows={models} rowKey="model_id" />}
        </Queried>
      </Section>
      <Below isSettled={!query.isPending}>
        <RecentFailures models={query.data?.models ?? []} />
      </Below>
    </>
  )
}

/** Milliseconds between two readings. A hidden tab reads nothing. */
const everyMs = 2_000

const total = (models: readonly Schema<'ModelLoad'>[], of: 'busy' | 'waiting'): number =>
  models.reduce((sum, one) => sum + one[of], 0)

/** What the whole machine does, for its owner. */
function MachineCard() {
  const status = useMachine({ refetchInterval: everyMs, staleTime: 0 })
  const { data: now } = status
  return (
    <>
      <PageHeading
        title={shellText.pages.overview}
        about={
          now
            ? `${serverText(now)}. ${overviewText.work(total(now.models, 'busy'), total(now.models, 'waiting'))}.`
            : '\u00a0'
        }
      />
      <AttentionList />
      <GpuSetup />
      {now && <FirstSteps models={now.models} />}
      <Queried query={status} lines={8}>
        {({ devices, engines, models, pools, peers }) => (
          <>
            <Section title={overviewText.devices}>
              <Devices devices={devices} engines={engines} models={models} />
            </Section>
            {pools.length > 0 && (
              <Section title={overviewText.pools}>
                <Pools pools={pools} engines={engines} models={models} />
              </Section>
            )}
            {peers.length > 0 && (
              <Section title={overviewText.peers}>
                <Peers peers={peers} />
              </Section>
            )}
            <Section title={overviewText.models}>
              <ModelQueues models={models} />
            </Section>
          </>
        )}
      </Queried>
      <Below isSettled={now !== undefined || status.isError}>
        <Charts />
        <RecentFailures models={now?.models ?? []} />
      </Below>
    </>
  )
}

type Load = Schema<'ModelLoad'>

function Queue({ waiting, interactive, waiting_for: first, waits }: Load) {
  return (
    <>
      {waiting === 0 ? (
        <span className="text-muted">{overviewText.nothingWaits}</span>
      ) : (
        overviewText.waiting(waiting, interactive)
      )}
      {waits && (
        <span className="text-muted block text-xs">
          {overviewText.waited(durationText(waits.queue_ms), durationText(waits.reference_queue_ms))}
        </span>
      )}
      {first && (
        <span className="text-muted block max-w-md text-xs">
          {first.detail}
          {first.eta_seconds !== null && first.eta_seconds > 0
            ? ` ${modelText.expected(durationText(first.eta_seconds * 1_000))}`
            : ''}
        </span>
      )}
    </>
  )
}

const loadColumns: readonly Column<Load>[] = columnsOf(overviewText.columns, {
  model: ({ model_id: id }) => <ModelLink id={id} />,
  state: ModelStateView,
  slots: ({ busy, slots }) =>
    slots === 0 ? (
      <span className="text-muted">{modelText.noSlots}</span>
    ) : (
      <span className="whitespace-nowrap">{modelText.busy(busy, slots)}</span>
    ),
  queue: Queue,
  speed: {
    number: true,
    wideOnly: true,
    show: ({ slots, output_tokens_per_second: speed }) => (slots === 0 ? '–' : decimalText(speed)),
  },
  firstToken: {
    number: true,
    wideOnly: true,
    show: ({ time_to_first_token_ms: ms }) => knownDuration(ms),
  },
  actions: ({ model_id: id, status }) => <ModelActions id={id} status={status} />,
})

/** Models with state, slots, and what waits for them and why. */
function ModelQueues({ models }: { models: readonly Load[] }) {
  if (models.length === 0)
    return (
      <Empty title={overviewText.noModels}>
        {overviewText.noModelsNext}
        <TextLink href="/models" label={overviewText.addModel} />
      </Empty>
    )
  return <Table label={overviewText.models} columns={loadColumns} rows={models} rowKey="model_id" />
}

const shown = 5
const key = ['overview', 'failures']

const failureTable: readonly Column<Schema<'JobSummary'>>[] = columnsOf(overviewText.failureColumns, {
  when: ({ finished_at: at, updated_at: updated }) => <Time at={at ?? updated} />,
  work: ({ id, task }) => <TextLink href={`/jobs/${id}`} label={<TaskLabel task={task} />} />,
  model: ({ model_id: id }) => <ModelLink id={id} />,
  why: ({ error }) => error?.message ?? '–',
})

/** A model whose engines fail: what the server says of it; sessions that do not own the machine learn no number. */
type Failing = Pick<Load, 'model_id' | 'status' | 'reason'> & { engine_failures?: number }

/** Models whose engines failed at the start or crashed, with the reason and the way to their log. */
function EngineFailures({ models }: { models: readonly Failing[] }) {
  const { ownerCan } = useSession()
  return models.map(({ model_id: id, status, reason, engine_failures: count = 0 }) => (
    <div key={id} role="status" className="bg-surface border-line mb-2 rounded-lg border p-3">
      <p className="flex flex-wrap items-baseline justify-between gap-x-3">
        <span>
          <TextLink href={modelHref(id)} className="underline" label={id} />
          {count > 0 && `: ${overviewText.engineFailures(count)}`}
        </span>
        {ownerCan('admin:read') && <TextLink href={modelHref(id, '?part=log')} label={overviewText.engineLog(id)} />}
      </p>
      <ModelStateView status={status} reason={reason} />
    </div>
  ))
}

/** The newest failed work of the organization, and the models that cannot serve because their engines fail. */
function RecentFailures({ models }: { models: readonly Failing[] }) {
  const query = useAnswer(key, () => api.GET('/api/jobs', { params: { query: { status: 'failed', limit: shown } } }), {
    refetchInterval: 30_000,
  })
  useLiveRefresh(['job.failed', 'snapshot'], key)
  const failing = models.filter(({ status, engine_failures: count = 0 }) => status === 'unavailable' || count > 0)
  return (
    <Section
      title={overviewText.failures}
      actions={<TextLink href="/jobs?status=failed" label={overviewText.allFailures} />}
    >
      {/* Those that need attention stand above, for the owner of the machine. */}
      <EngineFailures
        models={failing.filter(
          ({ status, engine_failures }) => engine_failures === undefined || !isFailing({ status, engine_failures }),
        )}
      />
      <Queried query={query}>
        {({ jobs }) =>
          jobs.length === 0 ? (
            failing.length === 0 && <Empty title={overviewText.noFailures}>{overviewText.noFailuresNext}</Empty>
          ) : (
            <Table label={overviewText.failures} columns={failureTable} rows={jobs} rowKey="id" />
          )
        }
      </Queried>
    </Section>
  )
}
