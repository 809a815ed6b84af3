import type { EngineTraits, ModelSet, ModelSetEntry } from '../../../core/models/engine-traits.ts'
import { features } from '../../../core/models/model.ts'
import { modelTasks as tasks } from '../../../core/schemas/task.ts'
import { routesOf } from '../../../gpu/presets/routes.ts'

/** A catalog with one model `m` that supports everything, changed where a test says so. */
export function catalogOf(traits: Partial<EngineTraits> = {}, entry: Partial<ModelSetEntry> = {}): ModelSet {
  const full: ModelSetEntry = {
    id: 'm',
    engine: 'custom',
    tasks: [...tasks],
    extraParams: [],
    traits: {
      routes: routesOf({ openaiText: 'all' }),
      features: new Set(features),
      rerankScores: 'probability',
      scoreBy: 'score',
      dimensions: true,
      base64: true,
      streamUsage: 'end',
      namedTool: true,
      promptLists: true,
      upstreamId: 'm',
      ...traits,
    },
    ...entry,
  }
  return new Map([[full.id, full]])
}
