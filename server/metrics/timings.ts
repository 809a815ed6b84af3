import { CountedHistogram, type Distribution } from './histogram.ts'

const kinds = {
  queue: {
    name: 'infer_queue_wait_seconds',
    help: 'Seconds that requests waited for a slot of an engine, loading of the model included.',
    buckets: [0.001, 0.01, 0.1, 0.5, 1, 5, 15, 60, 300],
  },
  firstToken: {
    name: 'infer_time_to_first_token_seconds',
    help: 'Seconds from a streamed request to its first piece of text.',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  },
  token: {
    name: 'infer_inter_token_latency_seconds',
    help: 'Mean seconds between two pieces of text, one value for each stream.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
  },
  load: {
    name: 'infer_model_load_seconds',
    help: 'Seconds from the start of an engine until it was ready.',
    buckets: [0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600],
  },
} as const
export type Timing = keyof typeof kinds

/** Weight of the latest value in the moving average. */
const share = 0.2

/** Measures durations by model: as histograms for Prometheus, and as moving averages for status views. */
export function openTimings() {
  const histograms = Object.fromEntries(
    Object.entries(kinds).map(([kind, one]) => [kind, new CountedHistogram({ ...one, labelNames: ['model'] })]),
  ) as Record<Timing, CountedHistogram<'model'>>
  const seen: Record<Timing, Map<string, { child: Distribution; meanMs: number }>> = {
    queue: new Map(),
    firstToken: new Map(),
    token: new Map(),
    load: new Map(),
  }

  /** Moving averages of the requests that waited for a slot. */
  const waits = new Map<string, { queueMs: number; referenceQueueMs: number }>()

  return {
    histograms: Object.values(histograms),
    record(kind: Timing, modelId: string, ms: number): void {
      const known = seen[kind].get(modelId)
      if (known) {
        known.child.observe(ms / 1000)
        known.meanMs += share * (ms - known.meanMs)
        return
      }
      const child = histograms[kind].under({ model: modelId })
      child.observe(ms / 1000)
      seen[kind].set(modelId, { child, meanMs: ms })
    },
    /** A request has waited for a slot, and would have waited `referenceQueueMs` in the reference order. */
    waited(modelId: string, queueMs: number, referenceQueueMs: number): void {
      const { queueMs: mean, referenceQueueMs: referenceMean } = waits.get(modelId) ?? { queueMs, referenceQueueMs }
      waits.set(modelId, {
        queueMs: mean + share * (queueMs - mean),
        referenceQueueMs: referenceMean + share * (referenceQueueMs - referenceMean),
      })
    },
    meanWait: (modelId: string) => waits.get(modelId) ?? null,
    /** The moving average in milliseconds; null before the first. */
    mean: (kind: Timing, modelId: string): number | null => seen[kind].get(modelId)?.meanMs ?? null,
  }
}
export type Timings = ReturnType<typeof openTimings>
