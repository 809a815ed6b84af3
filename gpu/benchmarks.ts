import { Failure } from '../core/failure.ts'
import type { Log } from '../core/log.ts'
import { type BenchmarkRun, ModelBenchmark } from '../core/models/benchmark.ts'
import type { Model } from '../core/models/model.ts'
import type { openEngineEffects } from './engine-effects.ts'
import { openModelRecords } from './model-figures.ts'
import type { Resident } from './residency/model-state.ts'

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
      residents: readonly Resident[],
      { placement, loads }: Pick<ReturnType<typeof openEngineEffects>, 'placement' | 'loads'>,
    ): ModelBenchmark {
      const engine = residents.find(({ serves, state }) => serves.model.id === model.id && state === 'ready')
      if (!engine)
        throw new Failure(
          'conflict',
          `No engine of '${model.id}' runs any more, so where the figures come from is not known. Measure again: infer model bench ${model.id}`,
        )
      const benchmark = {
        measured_at: Math.floor(now() / 1_000),
        runs_on: placement(engine).detail,
        memory_bytes: Math.round(engine.bytes),
        load_ms: loads(model.id).find(({ engineId }) => engineId === engine.engineId)?.loadMs ?? null,
        runs: [...runs],
      }
      records.set(model, benchmark)
      return benchmark
    },
  }
}
