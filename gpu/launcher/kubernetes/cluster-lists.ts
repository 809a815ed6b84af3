import { openCpu } from '../../../core/cpu/cpu.ts'
import type { AnswerBytes, ClusterApi } from './cluster-api.ts'
import { type ListItems, type ListKind, type ListPage, pageIn } from './list-page.ts'
import type { listWork } from './list-work.ts'

/** Objects in one page of a list. */
const pageSize = 500
/** Bytes of a page that is parsed in the event loop, in less than a millisecond. The API server compresses none so small. */
const parsedBytes = 32 << 10

/**
 * Reads lists of a cluster, which may have megabytes: what is needed of them is extracted in a thread. A small cluster needs
 * no thread.
 */
export function openClusterLists(api: Pick<ClusterApi, 'bytes'>) {
  const cpu = openCpu({ threads: 1 })
  const call = cpu.calling<typeof listWork>()

  async function read(answer: AnswerBytes, of: ListKind, signal: AbortSignal): Promise<ListPage> {
    const { bytes, isCompressed } = answer
    if (!isCompressed && bytes.length <= parsedBytes) return pageIn(answer, of)
    const text = await call('lists', 'readListPage', [bytes, isCompressed, of], { give: [bytes], signal })
    const [next = '', version = '', ...texts] = text.split('\n')
    return { next, version, texts }
  }

  /** What is read of a list, page by page. Rejects as `ClusterApi.request`. */
  async function* pages(
    path: string,
    query: Readonly<Record<string, string>>,
    of: ListKind,
    signal: AbortSignal,
  ): AsyncGenerator<ListPage> {
    let next = ''
    do {
      const more = { ...query, limit: String(pageSize), ...(next && { continue: next }) }
      const page = await read(await api.bytes({ path, query: more }, signal), of, signal)
      next = page.next
      yield page
    } while (next)
  }

  return {
    pages,
    /** The items of a whole list. */
    async items<Kind extends ListKind>(
      path: string,
      query: Readonly<Record<string, string>>,
      of: Kind,
      signal: AbortSignal,
    ): Promise<ListItems[Kind['kind']][]> {
      const items: ListItems[Kind['kind']][] = []
      for await (const { texts } of pages(path, query, of, signal))
        for (const text of texts) items.push(JSON.parse(text) as ListItems[Kind['kind']])
      return items
    },
    close: () => cpu.close(),
  }
}
export type ClusterLists = ReturnType<typeof openClusterLists>
