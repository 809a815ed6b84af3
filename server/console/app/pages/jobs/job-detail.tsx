import { Ban, RotateCcw, SquarePen, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useLocation } from 'wouter'
import { api, at, dataOf, hasEnded, refresh, type Schema, useAnswer, useSession, useTokens } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { JobStatus } from '../../components/badge.tsx'
import { Button, ButtonLink } from '../../components/button.tsx'
import { CopyButton } from '../../components/code.tsx'
import { Cost } from '../../components/cost.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { countText, durationText, sentenceText } from '../../components/format.ts'
import { ModelLink } from '../../components/model.tsx'
import { BackLink, Facts, Notice, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { InputsView } from '../../components/result/inputs-view.tsx'
import { TaskResult } from '../../components/result/task-result.tsx'
import { UnfinishedImage } from '../../components/result/unfinished-image.tsx'
import { Time } from '../../components/time.tsx'
import { jobsText } from '../../text/jobs.ts'
import { taskName } from '../../text/tasks.ts'
import { JobEvents, JobLog } from './job-log.tsx'

/** One job: where it stands and why, its inputs and result, what it used, its log. */
export function JobDetail({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['jobs', 'one', id], () => api.GET('/api/jobs/{id}', at({ id })), {
    refetchInterval: ({ state: { data } }) => (data && !hasEnded(data) ? 1_000 : false),
  })
  useLiveRefresh(['job.'], ['jobs', 'one', id])
  return (
    <>
      <BackLink href="/jobs">{jobsText.back}</BackLink>
      <Queried query={query} gone={jobsText.gone}>
        {job => <Shown job={job} />}
      </Queried>
    </>
  )
}

function Shown({ job }: { job: Schema<'Job'> }) {
  const { error, waiting_for: waiting } = job
  return (
    <>
      <PageHeading
        title={job.model_id}
        badge={<JobStatus status={job.status} progress={job.progress} />}
        actions={<JobActions job={job} />}
        about={taskName(job.task)}
      />
      {waiting && (
        <Why title={jobsText.waiting} kind="info">
          {sentenceText(waiting.detail)} {expected(job)}
        </Why>
      )}
      {error && (
        <Why title={jobsText.error} kind="bad">
          {error.message} {jobsText.attempt(error.attempt, job.max_attempts)}.{' '}
          {error.retryable && !hasEnded(job) && jobsText.again}
        </Why>
      )}
      <div className="grid gap-x-6 lg:grid-cols-[1fr_20rem]">
        <div className="min-w-0">
          <Section title={jobsText.result}>
            {job.result !== null && job.result !== undefined ? (
              <TaskResult result={job.result} inputs={job.inputs} />
            ) : (
              <p className="text-muted">{noResultText(job)}</p>
            )}
            {!hasEnded(job) && <UnfinishedImage job={job} />}
          </Section>
          <Section title={jobsText.inputs}>
            <InputsView inputs={job.inputs} />
          </Section>
          <Section title={jobsText.log}>
            <JobLog job={job} />
          </Section>
        </div>
        <div className="min-w-0">
          <JobFacts job={job} />
          <JobUsage job={job} />
          <JobEvents job={job} />
        </div>
      </div>
    </>
  )
}

function noResultText({ status }: Schema<'Job'>): string {
  if (status === 'completed') return jobsText.noResultKept
  return hasEnded({ status }) ? jobsText.noResultEver : jobsText.noResult
}

function expected({ queue_position, waiting_for }: Schema<'Job'>): string {
  // Of a queue the reason says it already.
  const isSaid = queue_position === null || waiting_for?.reason === 'queue'
  const seconds = waiting_for?.eta_seconds ?? null
  const both = [
    isSaid ? '' : jobsText.position(queue_position),
    seconds === null ? '' : jobsText.starts(durationText(seconds * 1_000)),
  ]
  return both.flatMap(one => (one ? `${one}.` : [])).join(' ')
}

const Why = ({ title, kind, children }: { title: string; kind: 'info' | 'bad'; children: ReactNode }) => (
  <Notice kind={kind} className="mb-4">
    <p className="min-w-0 break-words">
      <strong className="font-semibold">{title}: </strong>
      {children}
    </p>
  </Notice>
)

/** What can be done with a job in its state. */
function JobActions({ job }: { job: Schema<'Job'> }) {
  const { can } = useSession()
  const [, go] = useLocation()
  const [removing, setRemoving] = useState(false)
  const params = { path: { id: job.id } }
  const cancel = useAction(
    () => dataOf(api.POST('/api/jobs/{id}/cancel', { params })),
    () => jobsText.cancelled,
    ['jobs'],
  )
  const retry = useAction(
    () => dataOf(api.POST('/api/jobs/{id}/retry', { params })),
    created => {
      go(`/jobs/${created.id}`)
      return jobsText.retried
    },
  )
  if (!can('user:write')) return null
  const ended = hasEnded(job)
  return (
    <>
      {!ended && job.kind === 'async' && (
        <Button danger icon={Ban} busy={cancel.isPending} onClick={() => cancel.mutate()} label={jobsText.cancel} />
      )}
      {ended && job.kind === 'async' && (
        <Button icon={RotateCcw} busy={retry.isPending} onClick={() => retry.mutate()} label={jobsText.retry} />
      )}
      {job.inputs !== null && job.inputs !== undefined && (
        <ButtonLink href={`/playground?job=${job.id}`} icon={SquarePen} label={jobsText.repeat} />
      )}
      {ended && job.kind === 'async' && (
        <Button danger icon={Trash2} onClick={() => setRemoving(true)} label={jobsText.remove} />
      )}
      {removing && (
        <Confirm
          title={jobsText.removeTitle}
          action={jobsText.remove}
          act={async () => {
            await api.DELETE('/api/jobs/{id}', { params })
            announce('good', jobsText.removed)
            void refresh('jobs', 'list')
            go('/jobs')
          }}
          close={() => setRemoving(false)}
        >
          {jobsText.removeHelp}
        </Confirm>
      )}
    </>
  )
}

const { factNames: names } = jobsText

function waitedOf({ queue_ms: ms, reference_queue_ms: strict }: Schema<'Job'>['metrics']): string | null {
  if (ms === null) return null
  return strict === null ? durationText(ms) : jobsText.waitedInOrder(durationText(ms), durationText(strict))
}

/** What is known about a job besides its inputs and result. */
function JobFacts({ job }: { job: Schema<'Job'> }) {
  const time = (at: number | null) => at !== null && <Time at={at} />
  const span = (ms: number | null) => ms !== null && durationText(ms)
  const rows: [name: string, value: ReactNode][] = [
    [names.id, <Id key="id" id={job.id} />],
    [names.queueId, job.queue_id && <Id id={job.queue_id} />],
    [names.model, <ModelLink key="model" id={job.model_id} />],
    [names.kind, jobsText.kinds[job.kind]],
    [names.priority, job.priority !== 0 && job.priority],
    [names.attempts, job.attempts > 1 && jobsText.attempt(job.attempts, job.max_attempts)],
    [names.engine, job.worker_id],
    [names.created, time(job.created_at)],
    [names.started, time(job.started_at)],
    [names.finished, time(job.finished_at)],
    [names.waited, waitedOf(job.metrics)],
    [names.ran, span(job.metrics.run_ms)],
    [names.expires, time(job.expires_at)],
    [names.cost, job.cost !== null && <Cost key="cost" of={job.cost} />],
    [names.token, job.token_id && <TokenName key="token" id={job.token_id} />],
    [names.webhook, job.webhook_url],
    [names.metadata, metadataOf(job)],
  ]
  return (
    <Section title={jobsText.facts}>
      <Facts rows={rows} />
    </Section>
  )
}

/** What a job has used: only what is not 0. */
function JobUsage({ job: { usage } }: { job: Schema<'Job'> }) {
  const rows = Object.entries(usage ?? {})
    .filter(([, amount]) => amount !== null && amount > 0)
    .map(([name, amount]): [string, ReactNode] => [jobsText.usageNames[name] ?? name, countText(amount!)])
  return (
    rows.length > 0 && (
      <Section title={jobsText.usage}>
        <Facts rows={rows} />
      </Section>
    )
  )
}

function metadataOf({ metadata }: Schema<'Job'>): ReactNode {
  const entries = Object.entries(metadata ?? {})
  const items = entries.map(([name, value]) => <li key={name}>{`${name}: ${String(value)}`}</li>)
  return items.length > 0 && <ul>{items}</ul>
}

/** The name of a token, for those who may read tokens; its id for all others. */
function TokenName({ id }: { id: string }) {
  const name = useTokens(useSession().session.organization.id)?.find(token => token.id === id)?.name
  return name === undefined ? <span className="font-mono text-xs break-all">{id}</span> : <>{name}</>
}

const Id = ({ id }: { id: string }) => (
  <span className="flex items-start">
    <span className="min-w-0 pt-1.5 font-mono text-xs break-all">{id}</span>
    <CopyButton value={id} />
  </span>
)
