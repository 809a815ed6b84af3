import type { Cpu } from '../cpu/cpu.ts'
import type { JobRecord } from '../store/store.ts'
import type { FarReference, resultWork } from './result-work.ts'

/** Reads large results in a thread, so that only the parts that are referred to reach the event loop. */
export function openResultLookup({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof resultWork>()

  return {
    /** The values of references into the result of a node. Throws Failure `output_expired`. */
    referred: (path: string, nodeId: string, references: readonly FarReference[], task: JobRecord['task']) =>
      call('results', 'referredIn', { path, nodeId, references, task }),
    /** What a node keeps of its result, as JSON in UTF-8: `{result, values}`, or the result alone. Throws Failure `output_expired`. */
    pruned: (path: string, outputs: readonly string[], what: 'kept' | 'result') =>
      call('results', 'prunedResult', { path, outputs, what }),
  }
}
export type ResultLookup = ReturnType<typeof openResultLookup>
