import { ExternalLink, X } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { type Schema, useSession } from '../../api/client.ts'
import { JobStatus } from '../../components/badge.tsx'
import { ButtonLink, IconButton } from '../../components/button.tsx'
import { Queried } from '../../components/page.tsx'
import { jobsText } from '../../text/jobs.ts'
import { jobTitle, taskName } from '../../text/tasks.ts'
import { JobActions } from './job-actions.tsx'
import { JobFacts, JobUsage } from './job-facts.tsx'
import { JobContent, JobReasons, useJob } from './job-parts.tsx'

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
  const query = useJob(id, !isForeign)
  const job: Schema<'JobSummary'> | undefined = isForeign ? listed : (query.data ?? listed)
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    // Where the panel takes the place of the list, the row that had the focus is gone.
    if (!panel.current?.contains(document.activeElement) && matchMedia('(width < 64rem)').matches)
      panel.current?.focus()
  }, [])
  return (
    <section
      ref={panel}
      tabIndex={-1}
      aria-label={jobsText.panel}
      className="border-line bg-surface min-w-0 rounded-lg border p-4 lg:sticky lg:top-0 lg:max-h-[calc(100dvh-3rem)] lg:overflow-y-auto"
    >
      <div className="mb-3 flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 title={listed?.prompt ?? undefined} className="line-clamp-2 font-semibold break-words">
            {listed ? jobTitle(listed) : job ? taskName(job.task) : jobsText.panel}
          </h2>
          {job && (
            <p className="text-muted flex flex-wrap items-center gap-2">
              {listed?.prompt ? `${job.model_id} · ${taskName(job.task)}` : job.model_id}
              <JobStatus status={job.status} progress={job.progress} />
            </p>
          )}
        </div>
        {!isForeign && <ButtonLink small href={`/jobs/${id}`} icon={ExternalLink} label={jobsText.wholePage} />}
        <IconButton icon={X} label={jobsText.closePanel} onClick={() => open(undefined)} />
      </div>
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
    </section>
  )
}
