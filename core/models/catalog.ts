import type { Task } from '../schemas/task.ts'
import type { EngineTraits } from './fleet.ts'

/** Describes one enabled model to the functions that check a request. Plain data, so that a worker thread can take it. */
export interface CatalogEntry {
  id: string
  engine: string
  tasks: readonly Task[]
  extraParams: readonly string[]
  traits: EngineTraits
}
export type Catalog = ReadonlyMap<string, CatalogEntry>
