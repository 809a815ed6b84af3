import type { ExecutionEvent } from '../../core/store/event-types.ts'
import { nodeTypeOf } from '../../core/store/event-types.ts'
import type { SseRecord } from '../http/answer/sse.ts'
import type { Owners } from '../http/request/owners.ts'
import { shownResult } from './execution-nodes.ts'
import { executionSummary } from './execution-record.ts'
import { eventId, record } from './job-event.ts'
import type { Viewer } from './job-record.ts'

/** Characters. A result up to this length is part of its event; a longer one is read with its node. */
const maxResultLength = 64 << 10

const last = /^workflow_execution\.(completed|failed|cancelled|timed_out)$/

export const isLastOfExecution = (type: string): boolean => last.test(type)

/** Returns the type of an event in streams of executions; undefined if those do not have the event. */
export const eventName = ({ type, nodeId }: Pick<ExecutionEvent, 'type' | 'nodeId'>): string | undefined =>
  type.startsWith('job.') ? (nodeId === null ? undefined : nodeTypeOf(type)) : type

/**
 * Returns the record of an event; undefined if streams of executions do not have it. Results are part of the events
 * only if `tasks` (tasks by node) is passed.
 */
export async function recordOf(
  event: ExecutionEvent,
  tasks: ReadonlyMap<string, string> | undefined,
  viewer: Viewer,
  owners: Owners<'executions' | 'files'>,
): Promise<SseRecord | undefined> {
  const { executions } = owners
  const { nodeId, sequence, at } = event
  const type = eventName(event)
  if (type === undefined) return undefined
  const { executionId: id } = event
  const { organizationId } = viewer.caller
  const data: Record<string, unknown> = { execution_id: id }
  if (nodeId === null) {
    const execution = await executions.summary(organizationId, id)
    if (!execution) return undefined
    data.execution = executionSummary(execution)
  } else {
    Object.assign(data, { node_id: nodeId, job_id: event.jobId, attempt: event.attempt })
    if (event.item !== null) data.item = event.item
    else if (event.data !== null) data.error = JSON.parse(event.data)
    if (type.endsWith('.completed') || type.endsWith('.failed') || type.endsWith('.cached')) {
      const ended = (await executions.results(organizationId, id, [nodeId]))[nodeId]
      if (ended?.error) data.error = ended.error
      if (tasks && typeof ended?.result === 'string' && ended.result.length <= maxResultLength)
        data.result = await shownResult(tasks.get(nodeId)!, ended.result, viewer, owners)
    }
  }
  return record(type, at, eventId(sequence), JSON.stringify(data))
}
