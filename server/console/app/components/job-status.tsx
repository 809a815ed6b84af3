import { jobsText } from '../text/jobs.ts'
import { Badge, type BadgeKind } from './badge.tsx'

const kinds: Readonly<Record<string, BadgeKind>> = {
  pending: 'plain',
  ready: 'plain',
  processing: 'active',
  running: 'active',
  completed: 'good',
  failed: 'bad',
  timed_out: 'bad',
  cancelled: 'warning',
  skipped: 'plain',
}

/** The state of a job, an execution or a node; of one that runs also how far it is. */
export function JobStatus({ status, progress = null }: { status: string; progress?: number | null }) {
  const running = kinds[status] === 'active' && progress !== null && progress > 0
  return (
    <Badge kind={kinds[status] ?? 'plain'}>
      {jobsText.statuses[status] ?? status}
      {running && ` ${Math.round(progress * 100)} %`}
    </Badge>
  )
}
