import { z } from 'zod'
import { logLevels } from '../../schemas/log-level.ts'
import type { GenerationTask } from '../../schemas/task.ts'

/**
 * How infer speaks to an engine that makes files: one POST to `/v1/generate` with a `GenerationCall`, answered by
 * `application/x-ndjson`, one `EngineMessage` a line, the last of them `completed` or `failed`. Files lie on the disk
 * that both see: inputs are absolute paths that the engine reads, outputs are names of files that it wrote into
 * `folder`. A caller who hangs up wants the work to stop; `running` of the engine's health goes down when it has. An
 * engine that cannot begin answers a status of 400 or more with `{"error": {"message", "code"?}}` in place of the lines:
 * 400 when the request is wrong or can never be done here (`code` is one of core/failure.ts with that status), 503
 * when it cannot now. gpu/engines/demo/README.md has an example session, for those who write an engine.
 */
export const generatePath = '/v1/generate'

/** All inputs, checked and with every default filled in; sizes in pixels. Files are absolute paths. */
export interface GenerationInputs {
  prompt: string
  negative_prompt: string | null
  seed: number
  width: number
  height: number
  /** Pictures to make; 1 for videos. */
  num_images: number
  /** 1 for pictures. */
  num_frames: number
  fps: number
  num_inference_steps: number
  guidance_scale: number
  /** How far from the given picture, 0 to 1: image-to-image and inpainting. */
  strength: number
  output_format: 'png' | 'jpeg' | 'webp' | 'mp4'
  image: string | null
  /** White is where something new may appear, black is kept. */
  mask: string | null
  video: string | null
  audio: string | null
  /** Fields that the model's configuration lets through (`extra_params`), as they came. */
  extra: Record<string, unknown>
}

export interface GenerationCall {
  task: GenerationTask
  /** The engine's own name for the model. */
  model: string
  inputs: GenerationInputs
  /** An empty folder that the engine may write into; it is gone afterwards. */
  folder: string
}

/** A file that the engine made: what it says about it is checked before anybody hears of it. */
export const EngineFile = z.object({
  /** A plain file name in `folder`. */
  name: z.string().min(1).max(128),
  kind: z.enum(['image', 'video', 'audio']),
})
export type EngineFile = z.infer<typeof EngineFile>

export const EngineMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('progress'), fraction: z.number().min(0).max(1) }),
  z.object({ type: z.literal('log'), level: z.enum(logLevels).default('INFO'), message: z.string().max(4096) }),
  z.object({
    type: z.literal('completed'),
    files: z.array(EngineFile).min(1).max(16),
    seed_used: z.number().int().min(0),
    /** The prompt that was worked with, where it was rewritten. */
    prompt: z.string().optional(),
  }),
  z.object({
    type: z.literal('failed'),
    error: z.object({
      message: z.string().max(4096),
      /** Whether the request itself is at fault, so that trying again is useless. Otherwise it is tried again, within bounds. */
      invalid: z.boolean().default(false),
    }),
  }),
])
export type EngineMessage = z.infer<typeof EngineMessage>
