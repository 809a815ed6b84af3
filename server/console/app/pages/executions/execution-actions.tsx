import { Ban, RotateCcw } from 'lucide-react'
import { api, useSession } from '../../api/client.ts'
import { hasEnded } from '../../api/queries.ts'
import { useAction } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { executionsText as text } from '../../text/executions.ts'
import { useRetry } from './node-detail.tsx'
import type { Execution } from './use-execution.ts'

/** What can be done with an execution in its state. */
export function ExecutionActions({ execution }: { execution: Execution }) {
  const { can } = useSession()
  const { retry, busy } = useRetry(execution)
  const cancel = useAction(
    () => api.POST('/api/workflow-executions/{id}/cancel', { params: { path: { id: execution.id } } }),
    () => text.cancelled,
    ['executions'],
  )
  if (!can('user:write')) return null
  if (!hasEnded(execution))
    return (
      <Button danger icon={Ban} busy={cancel.isPending} onClick={() => cancel.mutate()}>
        {text.cancel}
      </Button>
    )
  return (
    <>
      {execution.status !== 'completed' && (
        <Button icon={RotateCcw} busy={busy} onClick={() => retry('failed')}>
          {text.retryFailed}
        </Button>
      )}
      <Button busy={busy} onClick={() => retry('start')}>
        {text.retryAll}
      </Button>
    </>
  )
}
