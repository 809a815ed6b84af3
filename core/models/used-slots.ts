/** The slots of one engine that requests use. Plain data. */
export interface EngineSlots {
  modelId: string
  /** Where the engine is called that infer does not start; empty for others. */
  addresses: readonly string[]
  /** How many they use. */
  slots: number
}

/** How many slots of engines the requests of a server use, by engine id; without engines that nobody uses. */
export type UsedSlots = ReadonlyMap<string, EngineSlots>
