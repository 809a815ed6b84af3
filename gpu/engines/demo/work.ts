import { setTimeout as delay } from 'node:timers/promises'
import type { EngineFile, EngineMessage, GenerationInputs } from '../../../core/tasks/protocols/generation-call.ts'

export interface DemoWork {
  inputs: GenerationInputs
  folder: string
  ffmpeg: string
  /** Aborted with a Failure when the client disconnects or the engine stops. */
  signal: AbortSignal
  log: (level: 'INFO' | 'WARN', message: string) => Promise<void>
  /** Sends an unfinished image: `image` is its position, from 0. */
  preview: (image: number, bytes: Uint8Array) => Promise<void>
  /**
   * Reports progress, 0 to 1: sends a message per completed step and waits at least `stepMs` for each. 0 starts the
   * response, so check the inputs before: afterwards they cannot be refused with an HTTP error.
   */
  reach: (fraction: number) => Promise<void>
}

export type Draw = (work: DemoWork) => Promise<EngineFile[]>

/** Interval between progress messages within one step, in milliseconds. */
const silenceMs = 500

/**
 * Reports progress as a diffusion model does: `step 12/30`, each step at least `stepMs` long. Long steps send progress
 * in between, so that the engine does not seem to hang.
 */
export function openSteps(
  steps: number,
  stepMs: number,
  signal: AbortSignal,
  send: (message: EngineMessage) => Promise<void>,
): DemoWork['reach'] {
  let done = 0
  let reportedAt = performance.now()
  return async fraction => {
    signal.throwIfAborted()
    if (fraction === 0) return send({ type: 'progress', fraction: 0 })
    const reached = Math.min(steps, Math.floor(fraction * steps + 1e-9))
    while (done < reached) {
      if (stepMs > 0) await delay(stepMs, undefined, { signal }).catch(() => signal.throwIfAborted())
      done++
      await send({ type: 'log', level: 'INFO', message: `step ${done}/${steps}` })
      await send({ type: 'progress', fraction: done / steps })
      reportedAt = performance.now()
    }
    if (performance.now() - reportedAt < silenceMs) return
    await send({ type: 'progress', fraction: Math.min(1, Math.max(fraction, done / steps)) })
    reportedAt = performance.now()
  }
}
