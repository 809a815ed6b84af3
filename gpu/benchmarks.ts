import { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import { type BenchmarkRun, ModelBenchmark } from '../core/models/benchmark.ts'
import type { EngineLoad } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import { openModelRecords } from './model-figures.ts'

/** The engine that has answered the requests of a benchmark. */
interface MeasuredEngine {
  engineId: string
  /** Where it ran. */
  detail: string
  bytes: number
}

/** Keeps the newest benchmark of each model, over restarts: `benchmarks.json` in the data directory. */
export function openBenchmarks(options: { dataDir: string; log: Log }, now: () => number = Date.now) {
  const records = openModelRecords(options, {
    file: 'benchmarks.json',
    read: value => ModelBenchmark.safeParse(value).data,
  })
  return {
    of: (model: Model): ModelBenchmark | null => records.of(model),
    /** Keeps figures of an engine of the model. Throws Failure `conflict` if none is ready any more. */
    keep(
      model: Model,
      runs: readonly BenchmarkRun[],
      engine: MeasuredEngine | undefined,
      loads: readonly EngineLoad[],
    ): ModelBenchmark {
      if (!engine)
        throw new Failure(
          'conflict',
          `No engine of '${model.id}' runs any more, so where the figures come from is not known. Measure again: infer model bench ${model.id}`,
        )
      const benchmark = {
        measured_at: Math.floor(now() / 1_000),
        runs_on: engine.detail,
        memory_bytes: Math.round(engine.bytes),
        load_ms: loads.find(({ engineId }) => engineId === engine.engineId)?.loadMs ?? null,
        runs: [...runs],
      }
      records.set(model, benchmark)
      return benchmark
    },
  }
}
