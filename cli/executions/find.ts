import { isId } from '../../core/ids.ts'
import type { Client } from '../client.ts'
import { refused, usage } from '../exit-codes.ts'
import { printable } from '../paint.ts'
import { ExecutionPage } from './execution.ts'

/** Fewer characters than this mean too many executions. */
const fewest = 4
/** Among so many of the newest a part of an id is looked for. */
const maxSearched = 100

export const listPath = (query: Record<string, string | number | undefined>): string => {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return `/api/workflow-executions?${new URLSearchParams(given as [string, string][]).toString()}`
}

/**
 * The execution that is meant by an id, or by the end of one where only one of the newest has it. Throws usage when
 * several have it, and `not_found` when none has.
 */
export async function findExecution(client: Client, text: string, signal?: AbortSignal): Promise<string> {
  if (text.startsWith('exec_') && isId(text)) return text
  const end = text.replace(/^exec_/i, '').toUpperCase()
  if (end.length < fewest || !/^[0-9A-Z]+$/.test(end))
    throw usage(
      `'${printable(text)}' is no id of an execution. Give the whole id, or ${fewest} or more characters of its end.`,
    )
  const path = listPath({ limit: maxSearched })
  const { executions } = await client.ask({
    method: 'GET',
    path,
    answer: ExecutionPage,
    ...(signal ? { signal } : {}),
  })
  const found = executions.map(({ id }) => id).filter(id => id.endsWith(end))
  if (found.length > 1) throw usage(`'${printable(text)}' may be ${found.join(' or ')}. Give more of the id.`)
  if (found[0]) return found[0]
  throw refused(
    'not_found',
    `None of the newest executions has an id that ends with '${printable(text)}'. See: infer execution list`,
  )
}
