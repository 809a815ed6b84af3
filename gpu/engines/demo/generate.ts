import { isVideoTask, type Operation, operationOf } from '../../../core/schemas/task.ts'
import type { EngineMessage } from '../../../core/tasks/protocols/generation-call.ts'
import type { Handler } from '../http.ts'
import { readCall } from './call.ts'
import { checkFfmpeg } from './ffmpeg.ts'
import { imageToImage, inpainting, textToImage } from './image-tasks.ts'
import { videoInterpolation } from './interpolation.ts'
import { imageToVideo, speechToVideo, textToVideo } from './video-tasks.ts'
import { type DemoWork, type Draw, openSteps } from './work.ts'

const draws: Partial<Record<Operation, Draw>> = {
  'create-image': textToImage,
  'edit-image': imageToImage,
  inpaint: inpainting,
  'create-video': textToVideo,
  'animate-image': imageToVideo,
  'animate-speech': speechToVideo,
  interpolate: videoInterpolation,
}

/** Handles generation calls and counts them: a call is running until all its programs have exited. */
export function openGenerate({ stepMs, ffmpeg }: { stepMs: number; ffmpeg: string }) {
  const calls = new Set<Promise<void>>()

  const handle: Handler = async (body, reply) => {
    const { task, inputs, folder } = readCall(body)
    // Before the first message, so that the call fails with an HTTP error: a retry would not install ffmpeg.
    if (isVideoTask(task)) await checkFfmpeg(ffmpeg, reply.signal)
    const { signal } = reply
    const send = async (message: EngineMessage) => {
      signal.throwIfAborted()
      await reply.write(lineOf(message))
    }
    const work: DemoWork = {
      inputs,
      folder,
      ffmpeg,
      signal,
      log: (level, message) => send({ type: 'log', level, message }),
      preview: (image, bytes) => send({ type: 'preview', image, data: Buffer.from(bytes).toString('base64') }),
      reach: openSteps({ steps: inputs.num_inference_steps, stepMs, signal, send }),
    }
    const files = await draws[operationOf(task)]!(work)
    reply.end(lineOf({ type: 'completed', files, seed_used: inputs.seed }))
  }

  return {
    handle: ((body, reply) => {
      const work = Promise.resolve(handle(body, reply))
      const settled = work.then(
        () => {},
        () => {},
      )
      calls.add(settled)
      void settled.then(() => calls.delete(settled))
      return work
    }) satisfies Handler,
    /** Number of running calls, including those of disconnected callers. */
    running: () => calls.size,
    /** Resolves when no call is running. */
    async idle(): Promise<void> {
      await Promise.all(calls)
    },
  }
}

const lineOf = (message: EngineMessage): string => `${JSON.stringify(message)}\n`
