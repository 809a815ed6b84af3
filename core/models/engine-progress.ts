/** Steps of the image or video that an engine makes now. Each image counts its own steps. */
export interface EngineProgress {
  step: number
  steps: number
}
