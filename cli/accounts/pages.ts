import { unreadableAnswer } from '../client/client.ts'

/** Maximum number of pages, in case a server always reports more. */
const maxPages = 10_000

/** Reads the entries of all pages, at most `limit`. `page` reads one, with at most `size` entries. */
export async function allPages<T>(
  page: (after: string | undefined, size: number) => Promise<{ entries: readonly T[]; next_cursor: string | null }>,
  limit = Infinity,
  largestPage = 100,
): Promise<T[]> {
  const found: T[] = []
  let after: string | undefined
  for (let count = 0; count < maxPages && found.length < limit; count++) {
    const { entries, next_cursor } = await page(after, Math.min(largestPage, limit - found.length))
    // The types hold for a server of this version only.
    if (!Array.isArray(entries) || next_cursor === undefined)
      throw unreadableAnswer('the server', new Error('The response is no page.'))
    found.push(...(entries as readonly T[]))
    if (next_cursor === null) break
    after = next_cursor
  }
  return found
}
