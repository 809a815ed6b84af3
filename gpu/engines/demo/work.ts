import { setTimeout as delay } from 'node:timers/promises'
import type { EngineFile, EngineMessage, GenerationInputs } from '../../../core/tasks/protocols/generation-call.ts'

/** One call under way, as those see it who draw. */
export interface Work {
  inputs: GenerationInputs
  folder: string
  /** The ffmpeg program. */
  ffmpeg: string
  /** Raised with a Failure when the caller has gone or the engine stops. */
  signal: AbortSignal
  log: (level: 'INFO' | 'WARN', message: string) => Promise<void>
  /**
   * So much is done, 0 to 1. Tells the steps that were passed, and lets each take its time. With 0 it is told that the
   * work has begun; what is wrong with the inputs is best found before, because it can still be refused then.
   */
  reach: (fraction: number) => Promise<void>
}

/** Draws what was asked for and names the files. */
export type Draw = (work: Work) => Promise<EngineFile[]>

/** Between two messages about the progress within one step, in milliseconds. */
const silenceMs = 500

/**
 * Turns what is done into what a diffusion model would say of it: `step 12/30`, each step at least `stepMs` long. Long
 * steps are told of in between, so that nobody takes the engine for stuck.
 */
export function openSteps({
  steps,
  stepMs,
  signal,
  say,
}: {
  steps: number
  stepMs: number
  signal: AbortSignal
  say: (message: EngineMessage) => Promise<void>
}): Work['reach'] {
  let done = 0
  let reportedAt = performance.now()
  return async fraction => {
    signal.throwIfAborted()
    if (fraction === 0) return say({ type: 'progress', fraction: 0 })
    const reached = Math.min(steps, Math.floor(fraction * steps + 1e-9))
    while (done < reached) {
      if (stepMs > 0) await delay(stepMs, undefined, { signal }).catch(() => signal.throwIfAborted())
      done++
      await say({ type: 'log', level: 'INFO', message: `step ${done}/${steps}` })
      await say({ type: 'progress', fraction: done / steps })
      reportedAt = performance.now()
    }
    if (performance.now() - reportedAt < silenceMs) return
    await say({ type: 'progress', fraction: Math.min(1, Math.max(fraction, done / steps)) })
    reportedAt = performance.now()
  }
}
