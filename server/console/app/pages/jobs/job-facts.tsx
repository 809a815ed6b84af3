import type { ReactNode } from 'react'
import type { Schema } from '../../api/client.ts'
import { useNames } from '../../api/names.ts'
import { CopyButton } from '../../components/code.tsx'
import { Cost } from '../../components/cost.tsx'
import { countText, durationText } from '../../components/format.ts'
import { ModelLink } from '../../components/model.tsx'
import { Facts, Section } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { jobsText } from '../../text/jobs.ts'

const { factNames: names } = jobsText

function waitedOf({ queue_ms: ms, reference_queue_ms: strict }: Schema<'Job'>['metrics']): string | null {
  if (ms === null) return null
  return strict === null ? durationText(ms) : jobsText.waitedInOrder(durationText(ms), durationText(strict))
}

/** What is known about a job besides its inputs and result. */
export function JobFacts({ job }: { job: Schema<'JobSummary'> }) {
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
    [names.firstToken, span(job.metrics.time_to_first_token_ms)],
    [names.ran, span(job.metrics.run_ms)],
    [names.expires, time(job.expires_at)],
    [names.cost, job.cost !== null && <Cost key="cost" of={job.cost} />],
    [names.token, job.token_id && <TokenName key="token" organization={job.organization_id} id={job.token_id} />],
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
export function JobUsage({ job: { usage } }: { job: Schema<'JobSummary'> }) {
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

function metadataOf({ metadata }: Schema<'JobSummary'>): ReactNode {
  const entries = Object.entries(metadata ?? {})
  const items = entries.map(([name, value]) => <li key={name}>{`${name}: ${String(value)}`}</li>)
  return items.length > 0 && <ul>{items}</ul>
}

/** The name of a token, for those who may read tokens; its id for all others. */
function TokenName({ organization, id }: { organization: string; id: string }) {
  const name = useNames(organization, [id]).get(id)
  return name === undefined ? <span className="font-mono text-xs break-all">{id}</span> : <>{name}</>
}

const Id = ({ id }: { id: string }) => (
  <span className="flex items-start">
    <span className="min-w-0 pt-1.5 font-mono text-xs break-all">{id}</span>
    <CopyButton value={id} />
  </span>
)
