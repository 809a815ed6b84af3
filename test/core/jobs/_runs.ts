import type { JobRecord } from '../../../core/store/store.ts'
import type { RunJob, RunReport, RunResult } from '../../../core/tasks/run-job.ts'

export const done: RunResult & { result: string } = {
  result: '"done"',
  usage: { inputTokens: 1, outputTokens: 2 },
  cost: 3,
  files: [],
  library: [],
}

/** A runner that calls this function; `undone` collects what it had to undo. */
export function runner(run: (...all: Parameters<RunJob>) => Promise<RunResult>, undone: RunResult[] = []): RunJob {
  return Object.assign((...all: Parameters<RunJob>) => run(...all), {
    undo: async (ran: RunResult) => void undone.push(ran),
  })
}

export interface HeldRun {
  job: JobRecord
  signal: AbortSignal
  report: RunReport
  finish: (result?: string) => void
  fail: (why: unknown) => void
}

/** A runner whose runs the test ends by hand. */
export function byHand() {
  const runs: HeldRun[] = []
  const undone: RunResult[] = []
  const listeners = new Set<() => void>()
  const run = runner(
    (job, _lease, signal, report) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
        runs.push({ job, signal, report, finish: (result = done.result) => resolve({ ...done, result }), fail: reject })
        for (const listener of listeners) listener()
      }),
    undone,
  )
  /** Resolves when this many runs have begun. */
  const begun = (count: number) =>
    new Promise<HeldRun[]>(resolve => {
      const look = () => {
        if (runs.length < count) return
        listeners.delete(look)
        resolve(runs)
      }
      listeners.add(look)
      look()
    })
  return { run, runs, undone, begun }
}
