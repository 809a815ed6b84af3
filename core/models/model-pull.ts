/** Progress of a pull. */
export type ModelPullEvent =
  /** What is done now, as words: `pulling manifest`. */
  { status: string } | { file: string; bytes: number; total: number }

/**
 * Downloads a model to this machine and offers it, as `infer model add` does. Resolves with its id once it is offered.
 * Rejects with Failure, or with the reason of `signal`; then what has been downloaded is kept.
 */
export type ModelPull = (
  name: string,
  options: { signal: AbortSignal; onEvent: (event: ModelPullEvent) => void },
) => Promise<string>
