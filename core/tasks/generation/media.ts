import { type FailureDetail, invalid } from '../../failure.ts'
import type { MediaKind } from '../../media/media.ts'
import { resolutions } from '../../schemas/resolution.ts'
import type { FileRecord } from '../../store/store.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { FillContext, GenerationTaskRecord } from '../task.ts'
import { type MediaReference, makesImages, type PreparedGeneration } from './prepare.ts'
import { maxFrames } from './request.ts'
import { ratioLike, type Size, sizeLike, sizeOf } from './size.ts'

type Taken = Pick<FileRecord, 'id' | 'width' | 'height' | 'durationMs'>

/** The stored files of a request; `images` has all images if there are several. */
export type TakenMedia = Partial<Record<MediaKind, Taken>> & { images?: readonly Taken[] }

/** Returns the stored files, which are in the order of the references, by their kind. */
export function byKind(media: readonly MediaReference[], files: readonly Taken[]): TakenMedia {
  const images = files.filter((_, at) => media[at]!.kind === 'image')
  return {
    ...Object.fromEntries(media.map(({ kind }, at) => [kind, files[at]!])),
    ...(images.length > 1 ? { image: images[0]!, images } : {}),
  }
}

/** Maximum frames of an interpolated video: one minute at 30 frames per second. */
const maxInterpolated = 1_800

/**
 * Returns the inputs to store with the job: with the ids of the stored files, and with the size and length of these
 * files where the caller sent none. Throws Failure `invalid_audio` or `invalid_video` for media that are too long, and
 * `invalid_image` for a mask whose size differs from that of the image.
 */
export function fillMedia(prepared: PreparedGeneration, taken: TakenMedia): GenerationInputs {
  const { task, inputs } = prepared
  const field = (kind: MediaKind) => prepared.media.find(reference => reference.kind === kind)?.field ?? `${kind}_url`
  if (prepared.maskFits) checkMask()
  return {
    ...inputs,
    ...(prepared.sizeFromMedia ? sizeFrom() : {}),
    num_frames: prepared.lengthFromMedia ? framesFrom() : inputs.num_frames,
    image: taken.image?.id ?? null,
    images: taken.images?.map(({ id }) => id),
    mask: taken.mask?.id ?? null,
    video: taken.video?.id ?? null,
    audio: taken.audio?.id ?? null,
  }

  function checkMask(): void {
    const { image, mask } = taken
    if (!image || !mask || (image.width === mask.width && image.height === mask.height)) return
    throw invalid(
      field('mask'),
      `The mask in '${field('mask')}' is ${mask.width} × ${mask.height} pixels and the image ${image.width} × ${image.height}: they must be the same.`,
      'invalid_image',
    )
  }

  function sizeFrom(): Partial<Size> {
    const { width, height } = taken.video ?? taken.image ?? { width: null, height: null }
    if (!width || !height) return {}
    if (taken.video) return { width, height }
    if (makesImages(task)) return sizeLike({ width, height })
    const ratio = ratioLike({ width, height })
    const resolution = resolutions.find(one => sizeOf(one, '16:9').width === inputs.width) ?? '480p'
    return sizeOf(resolution, ratio)
  }

  function framesFrom(): number {
    const kind = taken.video ? 'video' : 'audio'
    const durationMs = taken[kind]?.durationMs
    if (!durationMs) return inputs.num_frames
    const frames = Math.max(1, Math.round((durationMs / 1000) * inputs.fps))
    const maxAllowed = kind === 'video' ? maxInterpolated : maxFrames
    if (frames <= maxAllowed) return frames
    const seconds = Math.round(durationMs / 100) / 10
    const instead =
      kind === 'video'
        ? "Send a shorter one, or a lower 'fps'"
        : "Send a lower 'fps', or 'num_frames' for its beginning"
    throw invalid(
      field(kind),
      `'${field(kind)}' lasts ${seconds} s; at ${inputs.fps} frames a second this is ${frames} frames, but at most ${maxAllowed} are allowed. ${instead}.`,
      kind === 'video' ? 'invalid_video' : 'invalid_audio',
    )
  }
}

/** Checks a request and returns the inputs of its job: with defaults, and media as files. Rejects with Failure. */
export async function fillInputs(
  prepare: GenerationTaskRecord['prepare'],
  inputs: object,
  { model, drawSeed, take }: FillContext,
): Promise<GenerationInputs> {
  const prepared = prepare(inputs, model, drawSeed)
  const { expansionField: param } = prepared
  if (param !== undefined) throw invalid(param, nodeExpansion(param), 'unsupported_parameter')
  const taken: FileRecord[] = []
  for (const { kind, field, value, alpha } of prepared.media) taken.push(await take(field, value, kind, { alpha }))
  return fillMedia(prepared, byKind(prepared.media, taken))
}

/** Returns the fields by which the inputs of a node ask for a rewritten prompt, which only jobs can have. */
export const expansionFaults = (inputs: Readonly<Record<string, unknown>>): FailureDetail[] =>
  ['enable_prompt_expansion', 'prompt_optimizer'].flatMap(path =>
    inputs[path] === true ? [{ code: 'unsupported_parameter', path, message: nodeExpansion(path) }] : [],
  )

const nodeExpansion = (field: string): string =>
  `'${field}' has no effect in a workflow. Put a node with a chat model before this one, and use its answer as the prompt.`
