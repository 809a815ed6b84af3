import { randomInt } from 'node:crypto'
import type { z } from 'zod'
import { Failure, type FailureDetail } from '../../failure.ts'
import { isObject } from '../../json.ts'
import type { MediaKind } from '../../media/media.ts'
import type { GenerationDefaults } from '../../models/generation-defaults.ts'
import type { Model } from '../../models/model.ts'
import { failureOfIssues } from '../../schemas/issues.ts'
import type { Resolution } from '../../schemas/resolution.ts'
import { type GenerationTask, isVideoTask, mediaFor, operationOf } from '../../schemas/task.ts'
import { extraFields } from '../catalog.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { ModelFacts } from '../task.ts'
import { defaultedInputs, type SetInputs, setFields } from './input-defaults.ts'
import { type GenerationRequest, generationPresets, generationRequests, maxFrames, otherNames } from './request.ts'
import { defaultResolutions, imageSize, rounded, type Size, sizeOf } from './size.ts'

/** An image, mask, video or audio file that the request names and that has not been loaded yet. */
export interface MediaReference {
  kind: MediaKind
  /** Name of the field as the caller sent it. */
  field: string
  value: string
  /** For a mask: the transparent area is edited, not the white one. */
  alpha?: boolean
}

/** A validated request. Values that depend on its media are still missing. */
export interface PreparedGeneration {
  /** The task for the engine. */
  task: GenerationTask
  /** With all defaults. `image`, `mask`, `video` and `audio` are null until `fillMedia` sets them. */
  inputs: GenerationInputs
  media: MediaReference[]
  /** Whether the size follows from the image or video, because the caller sent none. */
  sizeFromMedia: boolean
  /** Whether the mask must have the size of the image. */
  maskFits?: boolean
  /** Whether the number of frames follows from the audio or video. */
  lengthFromMedia: boolean
  syncMode: boolean
  /** The field by which the request asks for a rewritten prompt; absent if it does not. */
  expansionField?: string
}

/** The settings of a model that requests are checked against. */
export type GenerationModel = Pick<Model, 'extra_params' | 'resolutions'> &
  Partial<Pick<Model, 'comfyui' | 'generation_defaults'>>

type Issue = z.core.$ZodIssue
type Body = Record<string, unknown>

/** Returns a random seed that every engine accepts. */
export const drawnSeed = (): number => randomInt(2 ** 31)

/**
 * Checks a request and fills in the defaults. Pure except for the seed, which is random if the request has none. Throws
 * Failure with every invalid field, under the names that the caller used.
 */
export function prepareGeneration(
  task: GenerationTask,
  body: unknown,
  model: GenerationModel,
  drawSeed = drawnSeed,
): PreparedGeneration {
  const schema = generationRequests[operationOf(task)]
  const { named, sent } = renamed(body, Object.keys(schema.shape))
  const parsed = schema.safeParse(named)
  const wrong: Issue[] = [...(parsed.error?.issues ?? [])]
  const allowed = model.resolutions ?? defaultResolutions
  const { resolution } = (named ?? {}) as Body
  if ('resolution' in schema.shape && resolution != null && !allowed.includes(resolution as never)) {
    const own = wrong.findIndex(issue => issue.path[0] === 'resolution')
    const issue: Issue = { code: 'invalid_value', values: [...allowed], path: ['resolution'], message: '' }
    if (own < 0) wrong.push(issue)
    else if (wrong[own]!.code === 'invalid_value') wrong[own] = issue
  }
  const request: GenerationRequest = parsed.data ?? {}
  const defaults = model.generation_defaults ?? {}
  const chosen =
    request.preset == null ? { ...generationPresets.balanced, ...defaults } : generationPresets[request.preset]
  const length = lengthOf(task, request, chosen)
  if (length.frames > maxFrames && !length.fromMedia)
    wrong.push({
      code: 'custom',
      path: ['duration'],
      message: `at ${length.fps} frames a second this is ${length.frames} frames, but at most ${maxFrames} are allowed.`,
    })
  if (wrong.length > 0) {
    const issues = wrong.map(issue => ({
      ...issue,
      path: issue.path.map((part, at) => (at ? part : (sent[part] ?? part))),
    }))
    throw failureOfIssues({ issues }, body)
  }
  const { size, fromMedia } = sizeFor(task, request, { resolution: allowed[0] ?? '480p', size: defaultSize(defaults) })
  const isImage = makesImages(task)
  const format = request.output_format ?? (isImage ? 'png' : 'mp4')
  const extra = extraFields(body, { extraParams: model.extra_params })
  return {
    task,
    inputs: {
      prompt: request.prompt ?? '',
      negative_prompt: request.negative_prompt ?? null,
      seed: request.seed ?? drawSeed(),
      ...size,
      num_images: isImage ? (request.num_images ?? 1) : 1,
      num_frames: length.frames,
      fps: length.fps,
      num_inference_steps: request.num_inference_steps ?? chosen.num_inference_steps,
      guidance_scale: request.guidance_scale ?? defaults.guidance_scale ?? 5,
      strength: request.strength ?? (mediaFor(task).includes('mask') ? 1 : 0.8),
      output_format: format === 'jpg' ? 'jpeg' : format,
      previews: request.previews || undefined,
      image: null,
      mask: null,
      video: null,
      audio: null,
      extra,
      ...defaultedInputs({ ...setInputs(request, sent), ...setFields(extra) }, model.comfyui, [
        ...(fromMedia ? (['width', 'height'] as const) : []),
        ...(length.fromMedia ? (['num_frames'] as const) : []),
      ]),
    },
    media: (['image', 'mask', 'video', 'audio'] as const).flatMap(kind => {
      const value = request[`${kind}_url`]
      return value === undefined ? [] : [{ kind, field: sent[`${kind}_url`] ?? `${kind}_url`, value }]
    }),
    sizeFromMedia: fromMedia,
    lengthFromMedia: length.fromMedia,
    syncMode: request.sync_mode ?? false,
    ...expansionOf(request),
  }
}

/** Returns the inputs that a request sets, each with the field by which it does. */
function setInputs(request: GenerationRequest, sent: Readonly<Record<PropertyKey, string>>): SetInputs {
  const { negative_prompt, seed, num_inference_steps, guidance_scale, strength, num_frames, fps, preset } = request
  const { image_size, width, height, resolution, num_images, duration } = request
  const aspect_ratio = request.aspect_ratio === 'auto' ? undefined : request.aspect_ratio
  const [size] = Object.values(setFields({ image_size, width, height, resolution, aspect_ratio }, sent))
  const [steps] = Object.values(setFields({ num_inference_steps, preset }, sent))
  const [frames] = Object.values(setFields({ num_frames, duration }, sent))
  return {
    ...setFields({ negative_prompt, seed, guidance_scale, strength, fps }, sent),
    ...setFields({ num_images: num_images === 1 ? undefined : num_images }, sent),
    width: size,
    height: size,
    num_inference_steps: steps,
    num_frames: frames,
  }
}

function expansionOf(request: GenerationRequest): Pick<PreparedGeneration, 'expansionField'> {
  const field = (['enable_prompt_expansion', 'prompt_optimizer'] as const).find(name => request[name] === true)
  return field === undefined ? {} : { expansionField: field }
}

/** Returns the sizes and lengths in these inputs that the model cannot generate. */
export function sizeFaults(
  task: GenerationTask,
  inputs: Body,
  { resolutions, generationDefaults }: ModelFacts,
): FailureDetail[] {
  try {
    prepareGeneration(task, inputs, { extra_params: [], resolutions, generation_defaults: generationDefaults }, () => 0)
    return []
  } catch (thrown) {
    const { code, message, param = '', details } = Failure.from(thrown)
    const found = details ?? [{ code, message, path: param }]
    return found.filter(({ path }) => path === 'resolution' || path === 'duration')
  }
}

/** The size of a model whose configuration has one. */
export const defaultSize = ({ width, height }: GenerationDefaults): Size | undefined =>
  width === undefined && height === undefined ? undefined : { width: (width ?? height)!, height: (height ?? width)! }

/** Whether the task creates images; all others create a video. */
export const makesImages = (task: GenerationTask): boolean => !isVideoTask(task)

/** Returns the body with infer's field names, and for each renamed field the name that the caller used. */
function renamed(body: unknown, fields: readonly string[]): { named: unknown; sent: Record<PropertyKey, string> } {
  const sent: Record<PropertyKey, string> = {}
  if (!isObject(body)) return { named: body, sent }
  const named: Body = {}
  for (const field of fields) {
    const name = [field, ...(otherNames[field] ?? [])].find(one => Object.hasOwn(body, one) && body[one] != null)
    if (name === undefined) continue
    const value = body[name]
    named[field] = name.endsWith('_urls') && Array.isArray(value) && value.length === 1 ? (value[0] as unknown) : value
    if (name !== field) sent[field] = name
  }
  return { named, sent }
}

function lengthOf(
  task: GenerationTask,
  request: GenerationRequest,
  chosen: { num_frames: number; fps: number },
): { frames: number; fps: number; fromMedia: boolean } {
  if (makesImages(task)) return { frames: 1, fps: chosen.fps, fromMedia: false }
  if (mediaFor(task).includes('video')) return { frames: 1, fps: request.fps ?? 60, fromMedia: true }
  const fps = request.fps ?? chosen.fps
  const { duration } = request
  if (request.num_frames != null) return { frames: request.num_frames, fps, fromMedia: false }
  if (duration != null) {
    const seconds = typeof duration === 'number' ? duration : Number.parseFloat(duration)
    return { frames: Math.max(1, Math.round(seconds * fps)), fps, fromMedia: false }
  }
  return { frames: chosen.num_frames, fps, fromMedia: mediaFor(task).includes('audio') }
}

function sizeFor(
  task: GenerationTask,
  request: GenerationRequest,
  fallback: { resolution: Resolution; size: Size | undefined },
): { size: Size; fromMedia: boolean } {
  const { image_size: requested, width, height, resolution } = request
  const ratio = request.aspect_ratio === 'auto' ? undefined : (request.aspect_ratio ?? undefined)
  const table = sizeOf(resolution ?? (makesImages(task) ? '720p' : fallback.resolution), ratio ?? '16:9')
  if (typeof requested === 'string') return { size: imageSize(requested), fromMedia: false }
  if (requested) return { size: rounded(requested), fromMedia: false }
  if (width != null || height != null)
    return { size: rounded({ width: width ?? height!, height: height ?? width! }), fromMedia: false }
  const usual = fallback.size ?? (makesImages(task) && mediaFor(task).length === 0 ? imageSize('square_hd') : table)
  const size = ratio || resolution ? table : usual
  return { size, fromMedia: mediaFor(task).length > 0 && !ratio }
}
