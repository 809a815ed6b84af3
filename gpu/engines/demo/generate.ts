import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { invalid } from '../../../core/failure.ts'
import { generationTasks, isVideoTask, mediaFor, type Operation, operationOf } from '../../../core/schemas/task.ts'
import {
  type EngineFile,
  type EngineMessage,
  filesType,
  type GenerationCall,
} from '../../../core/tasks/protocols/generation-call.ts'
import type { Handler } from '../http.ts'
import { parsedCall } from '../parsed-call.ts'
import { ReceivedCall } from '../received-call.ts'
import type { EngineReply } from '../reply.ts'
import { checkFfmpeg } from './ffmpeg.ts'
import { imageToImage, inpainting, textToImage } from './image-tasks.ts'
import { imageToVideo, speechToVideo, textToVideo, videoInterpolation } from './video-tasks.ts'
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

  const handle = async (body: unknown, reply: EngineReply): Promise<void> => {
    await using received = body instanceof ReceivedCall ? body : undefined
    const { task, inputs, folder } = readCall(received ? received.call : body)
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
      reach: openSteps(inputs.num_inference_steps, stepMs, signal, send),
    }
    if (received) reply.form = { ...reply.form, contentType: filesType }
    const files = await draws[operationOf(task)]!(work)
    const last = (written: readonly EngineFile[]) =>
      lineOf({ type: 'completed', files: [...written], seed_used: inputs.seed })
    if (!received) return reply.end(last(files))
    const sized = await Promise.all(
      files.map(async file => ({ ...file, bytes: (await stat(join(folder, file.name))).size })),
    )
    await reply.write(last(sized))
    for (const { name } of sized)
      for await (const piece of createReadStream(join(folder, name))) await reply.bytes(piece as Buffer)
    reply.end('')
  }

  return {
    handle: (async (body, reply) => {
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      calls.add(ended)
      try {
        await handle(body, reply)
      } finally {
        calls.delete(ended)
        resolve()
      }
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

const file = z.string().refine(isAbsolute, 'must be an absolute path')
const side = z.int().min(16).max(4096)

const Call: z.ZodType<GenerationCall> = z.object({
  task: z.enum(generationTasks),
  model: z.string(),
  inputs: z.object({
    prompt: z.string(),
    negative_prompt: z.string().nullable(),
    seed: z.int().min(0),
    width: side,
    height: side,
    num_images: z.int().min(1).max(16),
    num_frames: z.int().min(1).max(20_000),
    fps: z.int().min(1).max(240),
    num_inference_steps: z.int().min(1).max(1000),
    guidance_scale: z.number(),
    strength: z.number().min(0).max(1),
    output_format: z.enum(['png', 'jpeg', 'webp', 'mp4']),
    image: file.nullable(),
    images: z.array(file).min(2).max(16).optional(),
    background: z.literal('transparent').optional(),
    previews: z.int().min(1).max(3).optional(),
    mask: file.nullable(),
    video: file.nullable(),
    audio: file.nullable(),
    extra: z.record(z.string(), z.unknown()),
  }),
  folder: file,
})

/** Parses the body. Throws Failure `invalid_value` or `missing_required_parameter` with the field as `param`. */
function readCall(body: unknown): GenerationCall {
  const call = parsedCall(Call, body)
  const { task, inputs } = call
  const media = mediaFor(task)
  // It draws a voice without the image of a person.
  const needed = media.includes('audio') ? media.filter(field => field !== 'image') : media
  const missing = needed.find(field => inputs[field] === null)
  if (missing !== undefined)
    throw invalid(
      `inputs.${missing}`,
      `The task ${task} requires 'inputs.${missing}', the absolute path of a file.`,
      'missing_required_parameter',
    )
  const video = isVideoTask(task)
  if (video !== (inputs.output_format === 'mp4'))
    throw invalid('inputs.output_format', `The task ${task} writes ${video ? 'mp4' : 'png, jpeg or webp'}.`)
  return call
}
