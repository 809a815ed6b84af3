import { Badge, type BadgeKind } from '../../../components/badge.tsx'
import { editorText } from '../../../text/editor.ts'
import { type Problem, type ProblemCounts } from '../document/diagnostics.ts'
import type { ExecutionNode } from '../editor-context.ts'

const kinds: Record<string, BadgeKind> = {
  running: 'active',
  completed: 'good',
  failed: 'bad',
  timed_out: 'bad',
  skipped: 'warning',
  cancelled: 'warning',
}

/** The state of a node or an execution in one word; `progress` from 0 to 1. */
export function RunBadge({ status, progress }: { status: ExecutionNode['status']; progress?: number | null }) {
  const running = status === 'running' && typeof progress === 'number'
  return (
    <Badge kind={kinds[status] ?? 'plain'}>
      {editorText.statuses[status]}
      {running && ` ${editorText.progress(Math.round(progress * 100))}`}
    </Badge>
  )
}

/** Whether a problem is an error, in one word. */
export const SeverityBadge = ({ severity }: { severity: Problem['severity'] }) => (
  <Badge kind={severity === 'error' ? 'bad' : 'warning'}>{editorText[severity]}</Badge>
)

/** The state of a node in the last run; without one the worst that is wrong with it. */
export function NodeBadge({ run, errors, warnings }: { run: ExecutionNode | undefined } & ProblemCounts) {
  if (run) return <RunBadge status={run.status} progress={run.progress} />
  return errors + warnings > 0 && <SeverityBadge severity={errors > 0 ? 'error' : 'warning'} />
}
