import type { ReactNode } from 'react'
import { hasEnded, type Schema } from '../../api/client.ts'
import { durationText, sentenceText } from '../../components/format.ts'
import { Notice, Section } from '../../components/page.tsx'
import { InputsView } from '../../components/result/inputs-view.tsx'
import { TaskResult } from '../../components/result/task-result.tsx'
import { UnfinishedImage } from '../../components/result/unfinished-image.tsx'
import { jobsText } from '../../text/jobs.ts'

/** Why a job waits, and why it failed. */
export function JobReasons({ job }: { job: Schema<'JobSummary'> }) {
  const { error, waiting_for: waiting } = job
  return (
    <>
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
    </>
  )
}

/** The result of a job, or why there is none. */
export const JobResult = ({ job }: { job: Schema<'Job'> }) =>
  job.result !== null && job.result !== undefined ? (
    <TaskResult result={job.result} inputs={job.inputs} />
  ) : (
    <p className="text-muted">{noResultText(job)}</p>
  )

/** What a job has made, and of what. */
export const JobContent = ({ job }: { job: Schema<'Job'> }) => (
  <>
    <Section title={jobsText.result}>
      <JobResult job={job} />
      {!hasEnded(job) && <UnfinishedImage job={job} />}
    </Section>
    <Section title={jobsText.inputs}>
      <InputsView inputs={job.inputs} />
    </Section>
  </>
)

function noResultText({ status }: Schema<'Job'>): string {
  if (status === 'completed') return jobsText.noResultKept
  return hasEnded({ status }) ? jobsText.noResultEver : jobsText.noResult
}

function expected({ queue_position, waiting_for }: Schema<'JobSummary'>): string {
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
