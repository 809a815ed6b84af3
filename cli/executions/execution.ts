import { isId } from '../../core/ids.ts'
import { type Api, type Client, memberOf } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'

export type Execution = Api['Execution']
export type ExecutionSummary = Api['ExecutionSummary']
export type ExecutionNode = Api['ExecutionNode']

/** Resolves with the record of an execution; `include` adds its definition. */
export const executionOf = ({ api }: Client, id: string, signal?: AbortSignal, include?: 'dag'): Promise<Execution> =>
  memberOf(
    api.GET('/api/workflow-executions/{id}', { params: { path: { id }, query: { include } }, signal }),
    'execution',
  )

export const cancelExecution = ({ api }: Client, id: string): Promise<Execution> =>
  memberOf(api.POST('/api/workflow-executions/{id}/cancel', { params: { path: { id } } }), 'execution')

/** Whether an execution or a node has ended. An unknown state counts as not ended. */
export const isOver = (status: string): boolean =>
  ['completed', 'failed', 'cancelled', 'timed_out', 'skipped'].includes(status)

/** Minimum length of a part of an id; fewer characters match too many executions. */
const minIdPart = 4
/** Number of newest executions in which a part of an id is searched. */
const maxSearched = 100

/**
 * Finds an execution by its id or the end of its id, which must be unique among the newest. Throws usage when several
 * match, and `not_found` when none does.
 */
export async function findExecution(client: Client, text: string, signal?: AbortSignal): Promise<string> {
  if (text.startsWith('exec_') && isId(text)) return text
  const end = text.replace(/^exec_/i, '').toUpperCase()
  if (end.length < minIdPart || !/^[0-9A-Z]+$/.test(end))
    throw usageFailure(
      `'${printable(text)}' is not an execution id. Give the whole id, or ${minIdPart} or more characters of its end.`,
    )
  const query = { limit: maxSearched }
  const executions = await memberOf(
    client.api.GET('/api/workflow-executions', { params: { query }, signal }),
    'executions',
  )
  const found = executions.map(({ id }) => id).filter(id => id.endsWith(end))
  if (found.length > 1) throw usageFailure(`'${printable(text)}' matches ${found.join(' and ')}. Give more of the id.`)
  if (found[0]) return found[0]
  throw refused(
    'not_found',
    `None of the newest executions has an id that ends with '${printable(text)}'. See: infer execution list`,
  )
}
