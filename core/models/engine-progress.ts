/** Progress within one image or video. Each image is a pass of steps; a video of two models has two passes. */
export interface EngineProgress {
  /** From 1. */
  pass: number
  step: number
  steps: number
}
