import type { Cpu } from '../cpu/cpu.ts'
import { Failure } from '../failure.ts'
import type { JobRecord, LargeResult } from '../store/store.ts'
import { Unresolved } from './bind.ts'
import type { FoundValues, LargeReference, ListSlice, resultWork } from './result-work.ts'

/** Reads large results in a thread, so that only the referenced parts reach the event loop. */
export function openResultLookup({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof resultWork>()

  return {
    /** The values of references into the result of a node. Throws Failure `output_expired`. */
    async referred(
      result: LargeResult,
      nodeId: string,
      references: readonly LargeReference[],
      task: JobRecord['task'],
    ): Promise<FoundValues> {
      await using file = await result.localFile()
      return await call('results', 'referredIn', { path: file.path, nodeId, references, task })
    },
    /**
     * Items of a list in the result of a node, from a position on. Throws Unresolved, Failure `invalid_value` if it is no
     * list, `output_expired`.
     */
    async listed(
      result: LargeResult,
      nodeId: string,
      { source, from }: { source: string; from: number },
      task: JobRecord['task'],
    ): Promise<ListSlice> {
      await using file = await result.localFile()
      const found = await call('results', 'listIn', { path: file.path, nodeId, source, from, task })
      if ('missing' in found) throw new Unresolved(found.missing)
      if ('kind' in found) throw new Failure('invalid_value', `\${${source}} is of type ${found.kind}, not a list.`)
      return found
    },
    /**
     * The part of its result that a node keeps, as JSON in UTF-8: `{result, values}`, or the result alone. Throws
     * Failure `output_expired`.
     */
    async pruned(result: LargeResult, outputs: readonly string[], what: 'kept' | 'result'): Promise<Uint8Array> {
      await using file = await result.localFile()
      return await call('results', 'prunedResult', { path: file.path, outputs, what })
    },
  }
}
export type ResultLookup = ReturnType<typeof openResultLookup>
