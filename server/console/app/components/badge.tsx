import type { ReactNode } from 'react'
import { jobsText } from '../text/jobs.ts'

const looks = {
  plain: 'bg-raised text-muted',
  active: 'bg-accent-soft text-accent',
  good: 'bg-good-soft text-good',
  warning: 'bg-warning-soft text-warning',
  bad: 'bg-bad-soft text-bad',
}
export type BadgeKind = keyof typeof looks

/** A state in one word. The word says it; the colour only helps. */
export const Badge = ({ kind, children }: { kind: BadgeKind; children: ReactNode }) => (
  <span className={`inline-block rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${looks[kind]}`}>
    {children}
  </span>
)

/** How each state looks. */
export const statusKinds: Readonly<Record<string, BadgeKind>> = {
  pending: 'plain',
  ready: 'plain',
  processing: 'active',
  running: 'active',
  waiting: 'active',
  completed: 'good',
  failed: 'bad',
  timed_out: 'bad',
  cancelled: 'warning',
  skipped: 'plain',
}

/** The colours of a state. */
export const statusLook = (status: string): string => looks[statusKinds[status] ?? 'plain']

interface JobStatusProps {
  status: string
  progress?: number | null
  /** What a waiting node waits for. */
  awaits?: string | null
}

/** The state of a job, an execution or a node; of one that runs also how far it is. */
export function JobStatus({ status, progress = null, awaits = null }: JobStatusProps) {
  const kind = statusKinds[status] ?? 'plain'
  return (
    <Badge kind={kind}>
      {(awaits === null ? undefined : jobsText.awaits[awaits]) ?? jobsText.statuses[status] ?? status}
      {kind === 'active' && progress !== null && progress > 0 && ` ${Math.round(progress * 100)} %`}
    </Badge>
  )
}
