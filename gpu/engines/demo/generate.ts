import type { GenerationTask } from '../../../core/schemas/task.ts'
import type { EngineMessage } from '../../../core/tasks/protocols/generation-call.ts'
import type { Handler } from '../http.ts'
import { isVideo, readCall } from './call.ts'
import { checkFfmpeg } from './ffmpeg.ts'
import { imageToImage, inpainting, textToImage } from './image-tasks.ts'
import { videoInterpolation } from './interpolation.ts'
import { imageToVideo, speechToVideo, textToVideo } from './video-tasks.ts'
import { type Draw, openSteps, type Work } from './work.ts'

const draws: Record<GenerationTask, Draw> = {
  'slug/text-to-image': textToImage,
  'slug/image-to-image': imageToImage,
  'slug/inpainting': inpainting,
  'slug/text-to-video': textToVideo,
  'slug/image-to-video': imageToVideo,
  'slug/speech-to-video': speechToVideo,
  'slug/video-interpolation': videoInterpolation,
}

/** What answers the calls, and how many of them are worked on: one counts until the last of its programs has ended. */
export function openGenerate({ stepMs, ffmpeg }: { stepMs: number; ffmpeg: string }) {
  const works = new Set<Promise<void>>()

  const handle: Handler = async (body, reply) => {
    const { task, inputs, folder } = readCall(body)
    // Before the first message, so that it is a refusal: trying again does not install a program.
    if (isVideo(task)) await checkFfmpeg(ffmpeg, reply.signal)
    const { signal } = reply
    const say = async (message: EngineMessage) => {
      signal.throwIfAborted()
      await reply.write(lineOf(message))
    }
    const work: Work = {
      inputs,
      folder,
      ffmpeg,
      signal,
      log: (level, message) => say({ type: 'log', level, message }),
      reach: openSteps({ steps: inputs.num_inference_steps, stepMs, signal, say }),
    }
    const files = await draws[task](work)
    reply.end(lineOf({ type: 'completed', files, seed_used: inputs.seed }))
  }

  return {
    handle: ((body, reply) => {
      const work = Promise.resolve(handle(body, reply))
      const settled = work.then(
        () => {},
        () => {},
      )
      works.add(settled)
      void settled.then(() => works.delete(settled))
      return work
    }) satisfies Handler,
    /** Calls that are worked on, those included whose callers have gone. */
    running: () => works.size,
    /** Resolves when there are none. */
    async idle(): Promise<void> {
      await Promise.all(works)
    },
  }
}

const lineOf = (message: EngineMessage): string => `${JSON.stringify(message)}\n`
