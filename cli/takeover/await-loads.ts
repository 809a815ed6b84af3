/** How long a take-over waits for models that are being loaded, milliseconds. */
const loadMs = 120_000
/** Milliseconds between two looks. */
const lookMs = 50

/**
 * Resolves when no synchronous caller waits for a model that is not loaded, at the latest after two minutes: an engine that
 * is not ready cannot be taken over, and this server loads none once another one decides about engines.
 */
export async function awaitLoads(options: {
  /** The models that are not loaded and for which synchronous callers wait. */
  unserved: () => readonly string[]
  isStopped: () => boolean
  report: (text: string) => void
}): Promise<void> {
  const since = performance.now()
  let reported = false
  for (let models = options.unserved(); models.length > 0; models = options.unserved()) {
    if (options.isStopped() || performance.now() - since > loadMs) return
    if (!reported)
      options.report(`Requests wait for models that are being loaded: ${models.join(', ')}. Waiting for them.`)
    reported = true
    await new Promise(resolve => setTimeout(resolve, lookMs))
  }
}
