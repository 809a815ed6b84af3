import { isId } from '../../core/ids.ts'
import type { Client } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'
import { ExecutionPage } from './execution.ts'

/** Minimum length of a part of an id; fewer characters match too many executions. */
const minIdPart = 4
/** Number of newest executions in which a part of an id is searched. */
const maxSearched = 100

export const listPath = (query: Record<string, string | number | undefined>): string => {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return `/api/workflow-executions?${new URLSearchParams(given as [string, string][]).toString()}`
}

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
  const path = listPath({ limit: maxSearched })
  const { executions } = await client.ask({
    method: 'GET',
    path,
    answer: ExecutionPage,
    ...(signal ? { signal } : {}),
  })
  const found = executions.map(({ id }) => id).filter(id => id.endsWith(end))
  if (found.length > 1) throw usageFailure(`'${printable(text)}' matches ${found.join(' and ')}. Give more of the id.`)
  if (found[0]) return found[0]
  throw refused(
    'not_found',
    `None of the newest executions has an id that ends with '${printable(text)}'. See: infer execution list`,
  )
}
