import { ExternalLink } from 'lucide-react'
import { type Schema, useSession } from '../../api/client.ts'
import { useJob } from '../../api/job.ts'
import { JobStatus } from '../../components/badge.tsx'
import { ButtonLink } from '../../components/button.tsx'
import { Queried } from '../../components/page.tsx'
import { SidePanel } from '../../components/panel.tsx'
import { jobsText } from '../../text/jobs.ts'
import { jobTitle, taskName } from '../../text/tasks.ts'
import { JobActions } from './job-actions.tsx'
import { JobFacts, JobUsage } from './job-facts.tsx'
import { JobContent, JobReasons } from './job-parts.tsx'

interface JobPanelProps {
  id: string
  /** The job in the list, if it is there: all that is known of a job of another organization. */
  listed: Schema<'ListedJob'> | undefined
  /** Shows another job, or none. */
  open: (id: string | undefined) => void
}

/** One job beside the list; on a narrow screen in its place. */
export function JobPanel({ id, listed, open }: JobPanelProps) {
  const { session } = useSession()
  const isForeign = listed !== undefined && listed.organization_id !== session.organization.id
  const query = useJob(id, { isWanted: !isForeign })
  const job: Schema<'JobSummary'> | undefined = isForeign ? listed : (query.data ?? listed)
  return (
    <SidePanel
      label={jobsText.panel}
      title={
        <span title={listed?.prompt ?? undefined}>
          {listed ? jobTitle(listed) : job ? taskName(job.task) : jobsText.panel}
        </span>
      }
      about={
        job && (
          <>
            {listed?.prompt ? `${job.model_id} · ${taskName(job.task)}` : job.model_id}
            <JobStatus status={job.status} progress={job.progress} />
          </>
        )
      }
      actions={!isForeign && <ButtonLink small href={`/jobs/${id}`} icon={ExternalLink} label={jobsText.wholePage} />}
      closeLabel={jobsText.closePanel}
      close={() => open(undefined)}
    >
      {isForeign ? (
        <>
          <JobReasons job={listed} />
          <p className="text-muted mb-4">{jobsText.foreign}</p>
          <JobFacts job={listed} />
          <JobUsage job={listed} />
        </>
      ) : (
        <Queried query={query} gone={jobsText.gone}>
          {whole => (
            <>
              <div className="mb-4 flex flex-wrap gap-2 empty:hidden">
                <JobActions job={whole} open={open} />
              </div>
              <JobReasons job={whole} />
              <JobContent job={whole} />
              <JobFacts job={whole} />
              <JobUsage job={whole} />
            </>
          )}
        </Queried>
      )}
    </SidePanel>
  )
}
