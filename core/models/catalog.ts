import type { RegionLabel } from '../schemas/region.ts'
import type { Task } from '../schemas/task.ts'
import type { EngineTraits } from './engine-traits.ts'
import type { Model } from './model.ts'

/** An enabled model as the checks of requests need it. Plain data, so that it can be sent to a thread. */
export interface ModelSetEntry {
  id: string
  engine: string
  tasks: readonly Task[]
  extraParams: readonly string[]
  /** The label of the region in which its engines run; absent if there is none. */
  region?: RegionLabel | undefined
  traits: EngineTraits
  /** Texts before the inputs of embeddings; absent if the model has none. */
  embeddingPrefixes?: Model['embedding_prefixes']
  /** The most tokens of a request and its answer together; null or absent if unknown. */
  contextLength?: number | null
}
export type ModelSet = ReadonlyMap<string, ModelSetEntry>
