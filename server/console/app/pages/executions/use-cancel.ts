import { api, at } from '../../api/client.ts'
import { useAction } from '../../components/announcements.tsx'
import { executionsText } from '../../text/executions.ts'

/** Cancels an execution, and announces whether it could. */
export const useCancel = (id: string) =>
  useAction(
    () => api.POST('/api/workflow-executions/{id}/cancel', at({ id })),
    () => executionsText.cancelled,
    ['executions'],
  )
