import { z } from 'zod'
import { nonEmptyText } from '../../schemas/fields.ts'
import { logLevels } from '../../schemas/log-level.ts'
import type { GenerationTask } from '../../schemas/task.ts'

/**
 * The protocol of engines that write files: one POST to `/v1/generate` with a `GenerationCall`, answered by
 * `application/x-ndjson`, one `EngineMessage` a line, the last of them `completed` or `failed`. Inputs are absolute paths
 * that the engine reads, outputs are names of files that it wrote into `folder`. An engine that shares no folder with infer
 * gets a `FilesCall` instead, with the files in request and answer: see `filesType`. If infer closes the connection, the
 * engine must stop the work; then `running` of its health decreases. An engine that cannot start answers with a status of
 * 400 or more and `{"error": {"message", "code"?}}`: 400 if the request is invalid or can never run on this engine (`code`
 * is one of core/failure.ts with that status), 503 if it cannot run now.
 * gpu/engines/demo/README.md has an example session for authors of engines.
 */
export const generatePath = '/v1/generate'

/** All inputs, checked and with every default filled in; sizes in pixels. Files are absolute paths. */
export interface EngineInputs {
  prompt: string
  negative_prompt: string | null
  seed: number
  width: number
  height: number
  /** Number of images; 1 for videos. */
  num_images: number
  /** 1 for images. */
  num_frames: number
  fps: number
  num_inference_steps: number
  guidance_scale: number
  /** How far the output may differ from the input image, 0 to 1: image-to-image and inpainting. */
  strength: number
  output_format: 'png' | 'jpeg' | 'webp' | 'mp4'
  /** The quality that the request named, if any. It has its number of steps, and perhaps its price. */
  quality?: 'low' | 'medium' | 'high'
  image: string | null
  /** All input images if there are several, `image` first; absent for one or none. */
  images?: string[]
  /** White areas are generated, black areas are kept. */
  mask: string | null
  video: string | null
  audio: string | null
  /** Set if the images must have transparent pixels where nothing is drawn. Only for engines that can. */
  background?: 'transparent'
  /** How many `preview` messages to send for each image or for the video, 1 to 3. An engine that has no unfinished images sends none. */
  previews?: number
  /** Names of inputs that the request did not set, only for engines with defaults of their own, such as graphs. */
  defaulted?: string[]
  /** Fields that `extra_params` of the model allows, unchanged. */
  extra: Record<string, unknown>
}

/** The inputs of a job as they are stored: files by id, and what infer itself does with the prompt. */
export interface GenerationInputs extends EngineInputs {
  /** Quality from 0 to 99 with which infer itself writes JPEG and WebP files; the engine then writes PNG. */
  output_compression?: number
  /** Set until the prompt has been rewritten; the job is deferred until then. */
  prompt_expansion?: ExpandedPrompt
  /** The prompt of the request, once `prompt` is a rewritten one. */
  original_prompt?: string
}

/** How the prompt of a job is rewritten before it runs. */
export interface ExpandedPrompt {
  /** Jobs of one group, which one request created, get the same prompt. */
  group: string
  /** When the job may start, epoch milliseconds. */
  not_before: number
}

export interface GenerationCall {
  task: GenerationTask
  /** The engine's own name for the model. */
  model: string
  inputs: EngineInputs
  /** An empty folder that the engine may write into; it is removed afterwards. */
  folder: string
}

/**
 * The content type of a call with files, and of its answer: JSON, a line feed, and then the bytes of the files that it names,
 * one after another with nothing between them. In the answer they follow the line `completed`.
 */
export const filesType = 'application/vnd.infer.files'

/** A call to an engine that shares no folder with infer. Its inputs are names of `files`. */
export interface FilesCall extends Omit<GenerationCall, 'folder'> {
  files: SentFile[]
}

/** A file whose bytes follow the line that names it. */
export const SentFile = z.object({
  /** A plain file name, different from the others. */
  name: z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9][\w.-]*$/, 'must be a plain file name'),
  bytes: z.int().min(1),
})
export type SentFile = z.infer<typeof SentFile>

/** A file that the engine has written. It is checked before it is used. */
export const EngineFile = z.object({
  /** A plain file name in `folder`. */
  name: nonEmptyText.max(128),
  kind: z.enum(['image', 'video', 'audio']),
  /** Its size, if its bytes follow the message. */
  bytes: z.int().min(1).optional(),
})
export type EngineFile = z.infer<typeof EngineFile>

/** Characters of a preview: a message has at most 1 MiB. */
const maxPreview = 1_000_000

export const EngineMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('progress'), fraction: z.number().min(0).max(1) }),
  z.object({
    type: z.literal('preview'),
    /** Position of the image in the request, from 0. */
    image: z.int().min(0).max(15).default(0),
    /** The unfinished image as PNG, JPEG or WebP, in base64. */
    data: nonEmptyText.max(maxPreview),
  }),
  z.object({ type: z.literal('log'), level: z.enum(logLevels).default('INFO'), message: z.string().max(4096) }),
  z.object({
    type: z.literal('completed'),
    files: z.array(EngineFile).min(1).max(16),
    seed_used: z.int().min(0),
    /** The prompt that the engine used, if it was rewritten. */
    prompt: z.string().optional(),
  }),
  z.object({
    type: z.literal('failed'),
    error: z.object({
      message: z.string().max(4096),
      /** Whether the request is invalid, so that it is not retried. Other errors are retried within limits. */
      invalid: z.boolean().default(false),
    }),
  }),
])
export type EngineMessage = z.infer<typeof EngineMessage>
