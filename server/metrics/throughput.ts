import type { Usage } from '../../core/store/store.ts'

/** Tokens of one model since the start. A plain object, because relays increment it on the hot path. */
export interface ThroughputMeter {
  input: number
  output: number
}

/** Tokens per second of one model, over the last few seconds. */
export interface Rate {
  input: number
  output: number
}

const everyMs = 1_000

/**
 * Counts the tokens of each model. Streams are counted while they run, whole answers and prompts when they end. The
 * rate is that of the last `windowMs`.
 */
export function openThroughput({ windowMs = 5_000, now = () => performance.now() } = {}) {
  const meters = new Map<string, ThroughputMeter>()
  let samples: { at: number; totals: Map<string, ThroughputMeter> }[] = [{ at: now(), totals: new Map() }]
  const timer = setInterval(sample, everyMs).unref()

  function sample() {
    const at = now()
    samples.push({ at, totals: new Map([...meters].map(([id, meter]) => [id, { ...meter }])) })
    // The newest sample before the window stays, because the rate is measured from it.
    const from = samples.findLastIndex(one => one.at <= at - windowMs)
    if (from > 0) samples = samples.slice(from)
  }

  function meter(modelId: string) {
    let one = meters.get(modelId)
    if (!one) meters.set(modelId, (one = { input: 0, output: 0 }))
    return one
  }

  return {
    meter,
    /** Counts a request that was not counted while it ran. */
    used(modelId: string, { inputTokens, outputTokens }: Usage): void {
      const one = meter(modelId)
      one.input += inputTokens
      one.output += outputTokens
    },
    rate(modelId: string): Rate {
      const total = meters.get(modelId)
      if (!total) return { input: 0, output: 0 }
      const at = now()
      const from = samples.findLast(one => one.at <= at - windowMs) ?? samples[0]!
      const before = from.totals.get(modelId) ?? { input: 0, output: 0 }
      const seconds = Math.max(everyMs, at - from.at) / 1000
      return { input: (total.input - before.input) / seconds, output: (total.output - before.output) / seconds }
    },
    /** Tokens since the start, by model. */
    totals: (): ReadonlyMap<string, Readonly<ThroughputMeter>> => meters,
    sample,
    close: () => clearInterval(timer),
  }
}
export type Throughput = ReturnType<typeof openThroughput>
