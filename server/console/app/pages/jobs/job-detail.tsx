import type { ReactNode } from 'react'
import { api, type Schema } from '../../api/client.ts'
import { hasEnded, useAnswer, useLiveRefresh } from '../../api/queries.ts'
import { JobStatus } from '../../components/badge.tsx'
import { durationText } from '../../components/format.ts'
import { BackLink, Notice, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { InputsView } from '../../components/result/inputs-view.tsx'
import { TaskResult } from '../../components/result/task-result.tsx'
import { UnfinishedImage } from '../../components/result/unfinished-image.tsx'
import { jobsText } from '../../text/jobs.ts'
import { taskName } from '../../text/tasks.ts'
import { JobActions } from './job-actions.tsx'
import { JobFacts, JobUsage } from './job-facts.tsx'
import { JobEvents, JobLog } from './job-log.tsx'

/** One job: where it stands and why, its inputs and result, what it used, its log. */
export function JobDetail({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['jobs', 'one', id], () => api.GET('/api/jobs/{id}', { params: { path: { id } } }), {
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
        title={
          <span className="flex flex-wrap items-center gap-2">
            {job.model_id}
            <JobStatus status={job.status} progress={job.progress} />
          </span>
        }
        actions={<JobActions job={job} />}
      >
        {taskName(job.task)}
      </PageHeading>
      {waiting && (
        <Why title={jobsText.waiting} kind="info">
          {waiting.detail} {expected(job)}
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

function Why({ title, kind, children }: { title: string; kind: 'info' | 'bad'; children: ReactNode }) {
  return (
    <Notice kind={kind} className="mb-4">
      <p className="min-w-0 break-words">
        <strong className="font-semibold">{title}: </strong>
        {children}
      </p>
    </Notice>
  )
}
