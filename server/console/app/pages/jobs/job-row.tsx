import { Workflow } from 'lucide-react'
import { memo } from 'react'
import { Link } from 'wouter'
import type { Schema } from '../../api/client.ts'
import { ownUrl } from '../../components/addresses.ts'
import { JobStatus } from '../../components/badge.tsx'
import { kindOfTask } from '../../components/colours.ts'
import { Cost } from '../../components/cost.tsx'
import { durationText } from '../../components/format.ts'
import { KindIcon, ModelMark } from '../../components/marks.tsx'
import { Time } from '../../components/time.tsx'
import { addressWith } from '../../components/use-address.ts'
import { jobsText } from '../../text/jobs.ts'
import { jobTitle } from '../../text/tasks.ts'
import { usedText } from './used-text.ts'

type ListedJob = Schema<'ListedJob'>

/** What is known of a job that has not ended: its place, or when it will end. */
function timeOf({ metrics, queue_position, eta_seconds, status }: ListedJob): string {
  if (metrics.run_ms !== null) return durationText(metrics.run_ms)
  if (queue_position !== null) return jobsText.position(queue_position)
  if (eta_seconds !== null && status === 'processing') return jobsText.ends(durationText(eta_seconds * 1_000))
  return '–'
}

const spanText = (ms: number | null) => (ms === null ? '–' : durationText(ms))

/** The picture of a result, or the kind of the task. */
function JobPicture({ thumbnail_url, task }: Pick<ListedJob, 'thumbnail_url' | 'task'>) {
  if (thumbnail_url !== null)
    return <img src={ownUrl(thumbnail_url)} alt="" loading="lazy" className="size-7 shrink-0 rounded object-cover" />
  const kind = kindOfTask(task)
  return (
    <span aria-hidden className="bg-raised text-muted flex size-7 shrink-0 items-center justify-center rounded">
      {kind ? <KindIcon kind={kind} /> : <Workflow className="size-4" />}
    </span>
  )
}

/** The picture and the title of a job, which open it. Drawn anew only if they change: the other facts of a live job change all the time. */
const JobLink = memo(function JobLink(props: {
  id: string
  prompt: string | null
  task: ListedJob['task']
  thumbnail: string | null
  query: string
}) {
  const { id, prompt, task, thumbnail, query } = props
  return (
    <Link
      href={addressWith('/jobs', new URLSearchParams(query), { job: id })}
      data-row={id}
      title={id}
      className="flex min-w-0 items-center gap-2 hover:underline"
    >
      <JobPicture thumbnail_url={thumbnail} task={task} />
      <span className={`truncate ${prompt === null ? 'text-muted' : ''}`}>{jobTitle({ prompt, task })}</span>
    </Link>
  )
})

interface JobRowProps {
  job: ListedJob
  isOpen: boolean
  isChosen: boolean
  choose: (id: string) => void
  /** The parameters of the address without the open job. */
  query: string
  /** The name of its token, and of its organization where several are listed; undefined: there is no such column. */
  token: string | undefined
  organization: string | undefined
}

const cell = 'px-2 py-1 max-lg:py-0.5'
const wide = `${cell} max-lg:hidden`

/**
 * A job in a row: what was requested, and what became of it. While a job is open beside the list, the columns that are of class
 * `aside` are left out.
 */
export const JobRow = memo(function JobRow(props: JobRowProps) {
  const { job, isOpen, isChosen, choose, query, token, organization } = props
  return (
    <tr
      aria-selected={isOpen}
      className={`max-lg:grid max-lg:grid-cols-[auto_1fr_auto] max-lg:items-center max-lg:py-1 ${isOpen ? 'bg-accent-soft' : 'hover:bg-raised/50'}`}
    >
      <td className={`${cell} w-8`}>
        <input
          type="checkbox"
          aria-label={jobsText.choose(jobTitle(job))}
          checked={isChosen}
          onChange={() => choose(job.id)}
          className="accent-accent block size-4"
        />
      </td>
      <td className={`${cell} w-full max-w-0 max-lg:w-auto max-lg:max-w-none max-lg:min-w-0`}>
        <JobLink id={job.id} prompt={job.prompt} task={job.task} thumbnail={job.thumbnail_url} query={query} />
      </td>
      <td className={cell}>
        <JobStatus status={job.status} progress={job.progress} />
      </td>
      <td className={`${cell} text-muted max-lg:col-span-2 max-lg:col-start-2 lg:max-w-48 lg:truncate`}>
        <ModelMark id={job.model_id} /> {job.model_id}
        <span className="lg:hidden"> · {timeOf(job)}</span>
      </td>
      {organization !== undefined && <td className={`${wide} max-w-32 truncate`}>{organization}</td>}
      <td className={`${wide} aside text-right whitespace-nowrap tabular-nums`}>{usedText(job.usage)}</td>
      <td className={`${wide} aside text-right whitespace-nowrap tabular-nums`}>
        {spanText(job.metrics.time_to_first_token_ms)}
      </td>
      <td className={`${wide} text-right whitespace-nowrap tabular-nums`}>{timeOf(job)}</td>
      <td className={`${wide} aside text-right whitespace-nowrap tabular-nums`}>
        {job.cost ? <Cost of={job.cost} /> : '–'}
      </td>
      {token !== undefined && <td className={`${wide} aside max-w-32 truncate`}>{token}</td>}
      <td className={`${wide} text-muted`}>
        <Time at={job.created_at} />
      </td>
    </tr>
  )
})
