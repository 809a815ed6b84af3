import { useLocation } from 'wouter'
import type { Schema } from '../../api/client.ts'
import { useJob } from '../../api/job.ts'
import { JobStatus } from '../../components/badge.tsx'
import { BackLink, PageHeading, Queried, Section, useBeginning } from '../../components/page.tsx'
import { jobsText } from '../../text/jobs.ts'
import { taskName } from '../../text/tasks.ts'
import { JobActions } from './job-actions.tsx'
import { JobFacts, JobUsage } from './job-facts.tsx'
import { JobEvents, JobLog } from './job-log.tsx'
import { JobContent, JobReasons } from './job-parts.tsx'

/** One job: where it stands and why, its inputs and result, what it used, its log. */
export function JobDetail({ id }: { id: string }) {
  useBeginning()
  return (
    <>
      <BackLink page="jobs" />
      <Queried query={useJob(id)} gone={jobsText.gone}>
        {job => <Shown job={job} />}
      </Queried>
    </>
  )
}

function Shown({ job }: { job: Schema<'Job'> }) {
  const [, go] = useLocation()
  return (
    <>
      <PageHeading
        title={job.model_id}
        badge={<JobStatus status={job.status} progress={job.progress} />}
        actions={<JobActions job={job} open={next => go(next === undefined ? '/jobs' : `/jobs/${next}`)} />}
        about={taskName(job.task)}
      />
      <JobReasons job={job} />
      <div className="grid gap-x-6 lg:grid-cols-[1fr_20rem]">
        <div className="min-w-0">
          <JobContent job={job} />
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
