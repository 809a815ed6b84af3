import type { UsageSums } from '../../core/store/usage-records.ts'
import type { Throughput } from './throughput.ts'

/** What one model did in one interval. */
export interface ModelActivityCounts {
  modelId: string
  /** Requests and jobs that ended. */
  requests: number
  /** Those of them that failed. */
  failed: number
  inputTokens: number
  outputTokens: number
}

export interface HistorySample {
  /** End of the interval, epoch milliseconds. */
  at: number
  /** Length of the interval, milliseconds. */
  elapsedMs: number
  /** Models that did something. */
  models: readonly ModelActivityCounts[]
}

/** Length of an interval, and the number of intervals that are kept: one hour. */
export const historyIntervalMs = 10_000
const kept = 360

interface Totals {
  requests: number
  failed: number
  inputTokens: number
  outputTokens: number
}

/**
 * Keeps what models did in the last hour, in intervals of 10 s. It compares counters that exist anyway, so requests pay
 * nothing for it; an interval in which a model did nothing costs no memory for this model.
 */
export function openLoadHistory({
  used: usedByModel,
  throughput,
  now = Date.now,
}: {
  /** What work that finished since the start has used, by model. */
  used: () => ReadonlyMap<string, UsageSums>
  throughput: Pick<Throughput, 'totals'>
  now?: () => number
}) {
  const samples: HistorySample[] = []
  let before = totals()
  let beforeAt = now()
  const timer = setInterval(sample, historyIntervalMs).unref()

  function totals(): Map<string, Totals> {
    const used = usedByModel()
    const tokens = throughput.totals()
    return new Map(
      [...new Set([...used.keys(), ...tokens.keys()])].map(id => {
        const { requests = 0, jobs = 0, failed = 0 } = used.get(id) ?? {}
        const { input = 0, output = 0 } = tokens.get(id) ?? {}
        return [id, { requests: requests + jobs, failed, inputTokens: input, outputTokens: output }]
      }),
    )
  }

  function sample() {
    const [after, at] = [totals(), now()]
    const models = [...after].flatMap(([modelId, total]) => {
      const past = before.get(modelId)
      const counts = {
        modelId,
        requests: total.requests - (past?.requests ?? 0),
        failed: total.failed - (past?.failed ?? 0),
        inputTokens: total.inputTokens - (past?.inputTokens ?? 0),
        outputTokens: total.outputTokens - (past?.outputTokens ?? 0),
      }
      return counts.requests + counts.inputTokens + counts.outputTokens > 0 ? [counts] : []
    })
    samples.push({ at, elapsedMs: Math.max(1, at - beforeAt), models })
    if (samples.length > kept) samples.shift()
    before = after
    beforeAt = at
  }

  return {
    /** The intervals that ended after this time (epoch milliseconds), oldest first. */
    since: (at: number): readonly HistorySample[] => samples.slice(samples.findLastIndex(one => one.at <= at) + 1),
    /** Ends the current interval. */
    sample,
    close: () => clearInterval(timer),
  }
}
export type History = ReturnType<typeof openLoadHistory>
