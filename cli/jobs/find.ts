import { isId, jobIdOf } from '../../core/ids.ts'
import type { Client } from '../client.ts'
import { refused, usage } from '../exit-codes.ts'
import { printable } from '../paint.ts'
import { jobPages } from './job-pages.ts'

/** Fewer characters than this mean too many jobs. */
const fewest = 4
/** Among so many of the newest a part of an id is looked for. */
const maxSearched = 500

/** The id as it is when it is whole, `q_…` as the job it belongs to; undefined for a part of one. */
export function wholeId(text: string): string | undefined {
  if (!isId(text)) return undefined
  return text.startsWith('q_') ? jobIdOf(text) : text.startsWith('job_') ? text : undefined
}

/** What stands behind the `_`, in the letters in which ids are written. */
const core = (text: string): string => text.replace(/^(job|q)_/i, '').toUpperCase()

/** Of these ids, those that a part of one may mean: a beginning or an end. */
export const matching = (part: string, ids: readonly string[]): string[] =>
  ids.filter(id => core(id).startsWith(core(part)) || core(id).endsWith(core(part)))

/**
 * The jobs that are meant by ids, or by the beginning or the end of one where only one of the newest jobs has it.
 * Throws usage when several have it, and `not_found` when none has.
 */
export async function findIds(client: Client, texts: readonly string[], signal?: AbortSignal): Promise<string[]> {
  const parts = texts.filter(text => wholeId(text) === undefined)
  const short = parts.find(part => core(part).length < fewest || !/^[0-9A-Z]+$/.test(core(part)))
  if (short !== undefined)
    throw usage(
      `'${printable(short)}' is no id of a job. Give the whole id, or ${fewest} or more characters of its end.`,
    )
  const recent: string[] = []
  if (parts.length > 0)
    for await (const { id } of jobPages(client, {}, signal)) {
      recent.push(id)
      if (recent.length >= maxSearched) break
    }
  const ids = texts.map(text => {
    const whole = wholeId(text)
    if (whole !== undefined) return whole
    const found = matching(text, recent)
    if (found.length === 0)
      throw refused(
        'not_found',
        `None of the ${recent.length === 0 ? '' : `newest ${recent.length} `}jobs has an id that begins or ends with '${printable(text)}'. See: infer job list`,
      )
    if (found.length > 1)
      throw usage(
        `'${printable(text)}' may be ${found.length > 5 ? `any of ${found.length} jobs` : found.join(' or ')}. Give more of the id.`,
      )
    return found[0]!
  })
  return [...new Set(ids)]
}
