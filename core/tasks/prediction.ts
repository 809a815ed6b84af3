/** Media that the input of a prediction can have. */
export type PredictionMedia = 'image' | 'mask' | 'video' | 'audio'

export type PredictionInput = Readonly<Record<string, unknown>>

/** How a task is run as a prediction of Replicate's clients. Its functions are pure. */
export interface TaskPrediction {
  /** The media that the task needs. */
  media: readonly PredictionMedia[]
  /** Returns the request of the task's own endpoint, without the model. Models at Replicate name their inputs freely. */
  request(input: PredictionInput): Record<string, unknown>
  /** Returns the output for a result as readers get it. */
  output(result: object): unknown
}

/** Returns the first of these members that the input has. */
export const firstOf = (input: PredictionInput, ...names: string[]): unknown =>
  names.map(name => input[name]).find(value => value != null)
