import type { SuggestedEngine } from './recognition.ts'

/** The engine for a model. */
export interface EngineChoice<Name extends string> {
  engine: Name
  isInstalled: boolean
}

/**
 * Chooses the engine of a model from those that can run it, best first: the first that is installed and that this
 * machine can run, else the first installed one, else the first that this machine can run, else the best.
 * Undefined if infer has none of them.
 */
export function chooseEngine<Name extends SuggestedEngine>(
  candidates: readonly Name[],
  {
    isKnown,
    isInstalled,
    runsHere,
  }: {
    /** Whether infer has the engine. */
    isKnown: (engine: Name) => boolean
    isInstalled: (engine: Name) => boolean
    /** False for an engine that needs a GPU, on a machine without one. */
    runsHere: (engine: Name) => boolean
  },
): EngineChoice<Name> | undefined {
  const known = candidates.filter(isKnown)
  const installed = known.filter(isInstalled)
  const engine = installed.find(runsHere) ?? installed[0] ?? known.find(runsHere) ?? known[0]
  return engine === undefined ? undefined : { engine, isInstalled: installed.includes(engine) }
}
