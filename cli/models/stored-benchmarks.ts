import { join } from 'node:path'
import { openLog } from '../../core/log.ts'
import type { ModelBenchmark } from '../../core/models/benchmark.ts'
import { readConfig } from '../../core/models/config.ts'
import { openBenchmarks } from '../../gpu/benchmarks.ts'

/** Returns the benchmarks of the models in infer.yaml by their ids, as the server has kept them. */
export function storedBenchmarks(dataDir: string): ReadonlyMap<string, ModelBenchmark> {
  const benchmarks = openBenchmarks({ dataDir, log: openLog('error', () => undefined) })
  try {
    const { models } = readConfig(join(dataDir, 'infer.yaml'), false)
    return new Map(
      models.flatMap(model => {
        const benchmark = benchmarks.of(model)
        return benchmark ? [[model.id, benchmark]] : []
      }),
    )
  } catch {
    // The catalog needs no valid configuration.
    return new Map()
  }
}
