import { bufferOf, type Done, type ThreadWork } from '../../../core/cpu/thread-work.ts'
import { type ListKind, pageIn } from './list-page.ts'

/** Thread work on lists of a cluster. */
export const listWork = {
  /** The page as one text, by lines: next page, version and what is read. A list of texts would be copied one by one. */
  readListPage([bytes, isCompressed, of]: [bytes: Uint8Array, isCompressed: boolean, of: ListKind]): Done<string> {
    const { next, version, texts } = pageIn({ bytes: bufferOf(bytes), isCompressed }, of)
    return { value: [next, version, ...texts].join('\n') }
  },
} satisfies ThreadWork
