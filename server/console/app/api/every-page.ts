import { dataOf } from './client.ts'

/** Reads the pages of a list to its end: only for lists that stay short enough to choose from. Rejects with ApiFailure. */
export async function everyPage<Page extends { next_cursor: string | null }>(
  read: (after: string | undefined) => Promise<{ data?: Page }>,
): Promise<Page[]> {
  const pages: Page[] = []
  for (let after: string | undefined; ; ) {
    const page = await dataOf(read(after))
    pages.push(page)
    if (page.next_cursor === null) return pages
    after = page.next_cursor
  }
}
