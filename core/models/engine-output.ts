/** A line that an engine printed. */
export interface EngineLine {
  /** Epoch milliseconds. */
  at: number
  modelId: string
  engineId: string
  text: string
}

export interface EngineOutput {
  /**
   * Returns the newest `max` of the kept lines, oldest first. Up to a megabyte is kept of each running engine and of the
   * last few that have ended.
   */
  recent(modelId?: string, max?: number): EngineLine[]
  /** Calls the listener with each line from now on, until the function that it returns is called. */
  follow(listener: (line: EngineLine) => void): () => void
}
