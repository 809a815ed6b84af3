import { setFlagsFromString } from 'node:v8'
import { collectGarbage } from '../../core/collect-garbage.ts'

/**
 * Reduces the memory of a server, or of a gateway process, beside the same work. Called only after the start, because after a change of flags V8
 * accepts no cached code.
 */
export function tuneMemory(): void {
  // Stops V8 from allocating request objects in the old generation. Objects allocated during the start survive, and V8
  // concludes that later objects from the same code survive too; in the old generation they would hold everything they
  // refer to until the next full collection. Without this flag, whether that happened differed from start to start
  // (bin/README.md).
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Lets the old generation grow by a tenth between two full collections. V8 chose up to a doubling: the memory beside
  // the same work differed by 60 MB from start to start. The processor time per request is the same (bin/README.md).
  setFlagsFromString('--heap-growing-percent=10')
  // The garbage of the start: V8 would keep it while the server is idle.
  setTimeout(collectGarbage, 2_000).unref()
  // Small buffers are slices of 64 KiB blocks, and one slice keeps its whole block: 8 kB that wait for a client that does
  // not read would hold 64 KiB. Blocks of 8 KiB hold slices of at most 4 KiB.
  Buffer.poolSize = 8 << 10
}
