import type { Cpu } from '../cpu/cpu.ts'
import { type batchWork, type CheckedFile, type InputLine, type PageOptions, readPage } from './batch-work.ts'

/** Longer lines are parsed in a thread. Parsing 64 KiB takes half a millisecond. */
const largestInline = 64 << 10

/** Reads the input files of batches without blocking the event loop. */
export function openInputFiles({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof batchWork>()
  return {
    /** Checks all lines, in a thread. */
    check: (options: Parameters<typeof batchWork.checkBatch>[0], signal: AbortSignal): Promise<CheckedFile> =>
      call('batches', 'checkBatch', options, { signal }),
    /** Reads the next lines, at most about 64 KiB of them or one larger line. Empty at the end of the file. */
    async page(options: Omit<PageOptions, 'bytes'>): Promise<InputLine[]> {
      const page = await readPage({ ...options, bytes: largestInline }, largestInline)
      return page ?? call('batches', 'readBatch', { ...options, lines: 1, bytes: largestInline })
    },
  }
}
export type InputFiles = ReturnType<typeof openInputFiles>
