import { Badge, type BadgeKind } from '../../../components/badge.tsx'
import { editorText } from '../../../text/editor.ts'
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
