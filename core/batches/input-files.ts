import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cpu } from '../cpu/cpu.ts'
import {
  type batchWork,
  type CheckedFile,
  checkFile,
  type InputCheckOptions,
  type InputLine,
  lineSummary,
  type PageOptions,
  readPage,
} from './batch-work.ts'

/** Longer lines are parsed in a thread. Parsing 64 KiB takes half a millisecond. */
const largestInline = 64 << 10

/** Reads the input files of batches without blocking the event loop. */
export function openInputFiles({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof batchWork>()
  return {
    /** Checks all lines, a millisecond at a time: a thread for it would need more memory than all other work of a batch. */
    check(options: InputCheckOptions, signal: AbortSignal): Promise<CheckedFile> {
      let began = performance.now()
      async function turn(): Promise<void> {
        await nextTurn()
        signal.throwIfAborted()
        began = performance.now()
      }
      return checkFile(options, {
        pause: () => (performance.now() - began > 1 ? turn() : undefined),
        summary: (text, target) =>
          text.length > largestInline
            ? call('batches', 'checkBatchLine', { text, target }, { signal })
            : lineSummary(text, target),
      })
    },
    /** Reads the next lines, at most about 64 KiB of them or one larger line. Empty at the end of the file. */
    async page(options: Omit<PageOptions, 'bytes'>): Promise<InputLine[]> {
      const page = await readPage({ ...options, bytes: largestInline }, largestInline)
      return page ?? call('batches', 'readBatch', { ...options, lines: 1, bytes: largestInline })
    },
  }
}
export type InputFiles = ReturnType<typeof openInputFiles>
