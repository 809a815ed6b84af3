import { Failure } from '../../failure.ts'
import type { EngineRoute } from '../../models/engine-traits.ts'
import { isVideoTask } from '../../schemas/task.ts'
import { Base64File } from './base64-file.ts'
import type { GenerationCall } from './generation-call.ts'

type Fields = Record<string, unknown>

/** Where `extra_params` of a model go in the engine's request. Source: examples/server/api.md of stable-diffusion.cpp. */
const samplingFields = ['scheduler', 'sample_method', 'eta', 'shifted_timestep', 'custom_sigmas', 'flow_shift'] as const
const guidanceFields = ['img_cfg', 'distilled_guidance', 'slg'] as const
const imageFields = ['control_strength', 'auto_resize_ref_image', 'increase_ref_index', 'hires'] as const
const videoFields = ['high_noise_sample_params', 'moe_boundary', 'vace_strength'] as const
const commonFields = [
  'clip_skip',
  'lora',
  'vae_tiling_params',
  'cache_mode',
  'cache_option',
  'scm_mask',
  'scm_policy_dynamic',
] as const

/** The number of frames that the engine makes for a requested number: one more than a multiple of four. */
export const framesOf = (requested: number): number => Math.max(0, Math.floor((requested - 1) / 4)) * 4 + 1

/** Returns the request of the engine's own API. Throws Failure `unsupported_parameter` for an extra field that it lacks. */
export function sdFields({ task, inputs }: GenerationCall, { images }: Pick<EngineRoute, 'images'>): Fields {
  const isVideo = isVideoTask(task)
  const { top, sampling, guidance } = sortExtra(inputs.extra, isVideo)
  const image = (path: string | null) => (path === null ? undefined : new Base64File(path))
  const references = inputs.images ?? (inputs.image === null ? [] : [inputs.image])
  const asReference = !isVideo && (images === 'reference' || references.length > 1)
  return {
    ...top,
    prompt: inputs.prompt,
    negative_prompt: inputs.negative_prompt ?? '',
    width: inputs.width,
    height: inputs.height,
    seed: inputs.seed,
    // Without an input image the engine ignores it, but refuses values outside of 0 to 1.
    strength: inputs.strength,
    ...(asReference
      ? { ref_images: references.map(path => new Base64File(path)) }
      : { init_image: image(inputs.image) }),
    ...(isVideo
      ? { video_frames: framesOf(inputs.num_frames), fps: inputs.fps }
      : { batch_count: inputs.num_images, mask_image: image(inputs.mask) }),
    // Every build writes AVI; only some write WebM. infer makes MP4 of it.
    output_format: isVideo ? 'avi' : inputs.output_format,
    output_compression: 100,
    sample_params: {
      ...sampling,
      sample_steps: inputs.num_inference_steps,
      guidance: { ...guidance, txt_cfg: inputs.guidance_scale },
    },
  }
}

function sortExtra(extra: Fields, isVideo: boolean) {
  const sorted: Record<'top' | 'sampling' | 'guidance', Fields> = { top: {}, sampling: {}, guidance: {} }
  const topFields: readonly string[] = [...commonFields, ...(isVideo ? videoFields : imageFields)]
  const places: readonly [readonly string[], Fields][] = [
    [topFields, sorted.top],
    [samplingFields, sorted.sampling],
    [guidanceFields, sorted.guidance],
  ]
  for (const [name, value] of Object.entries(extra)) {
    const fields = places.find(([names]) => names.includes(name))?.[1]
    if (!fields)
      throw new Failure(
        'unsupported_parameter',
        `'${name}' is in 'extra_params' of this model, but its engine, sd-server, has no such field for this task. Leave it out.`,
        { param: name },
      )
    fields[name] = value
  }
  return sorted
}
