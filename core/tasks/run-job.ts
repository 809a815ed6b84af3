import type { Lease } from '../models/fleet.ts'
import type { JobRecord, LogLine, NewFile, NewLibraryItem, Usage } from '../store/store.ts'

/** What one attempt of a job came to. Files lie in their place already; their rows are written with the job's end. */
export interface RunResult {
  /** JSON text, or the same in UTF-8. */
  result: string | Uint8Array
  usage: Usage
  /** Millionths of the currency unit. */
  cost: number
  files: NewFile[]
  library: NewLibraryItem[]
  /** What the inputs came to, where they are known only now: JSON text. */
  inputs?: string
  /** Under which the same work finds the result again. */
  cacheKey?: string
}

/** What a run says while it goes on. Cheap, never throws, may be called at any rate. */
export interface RunReport {
  /** 0 to 1; what goes back is passed over. */
  progress(fraction: number): void
  log(level: LogLine['level'], message: string): void
}

export interface RunnableJob extends JobRecord {
  /** What addresses of our own files in its inputs begin with; absent where it holds none. */
  origin?: string
}

/**
 * Runs one attempt of a durable job on the slot that was leased for it; the lease is given back by the caller. Rejects
 * with Failure, or with the signal's reason once that has aborted. What it kept on the disk for an attempt whose end is
 * not taken any more (cancelled meanwhile, overtaken) is freed through `undo`.
 */
export interface RunJob {
  (job: RunnableJob, lease: Lease, signal: AbortSignal, report: RunReport): Promise<RunResult>
  undo(ran: RunResult, job: JobRecord): Promise<void>
  /** The job has ended with what the attempt came to, and that is written. Cheap, never throws. */
  written?(job: JobRecord, ran: RunResult): void
}
