import { type Task, tasksBy } from '../../schemas/task.ts'
import type { GenerationDefaults } from '../generation-defaults.ts'

/** What the publisher of a family recommends. Steps and guidance may be beyond the bounds of requests. */
export type FamilyDefaults = GenerationDefaults &
  Required<Pick<GenerationDefaults, 'num_inference_steps' | 'guidance_scale' | 'width' | 'height'>>

/** A file that sd-server needs besides the diffusion model. */
export interface CompanionFile {
  /** The option of sd-server that names it. */
  option: string
  /** What it is, for the user. */
  is: string
  /** Usual names of the file, in lower case. */
  names: RegExp
}

/** Models with the same tensors, which the same engines run in the same way. */
export interface DiffusionFamily {
  title: string
  tasks: readonly Task[]
  defaults: FamilyDefaults
  /** What sd-server loads beside the diffusion model; absent when sd-server does not run the family. */
  companions?: readonly CompanionFile[]
}

const images = tasksBy('create-image', 'edit-image', 'inpaint')
const drawings = tasksBy('create-image', 'edit-image')
const edits = tasksBy('edit-image')
const creation = tasksBy('create-image')
const videos = tasksBy('create-video', 'animate-image')
const textToVideo = tasksBy('create-video')
const imageToVideo = tasksBy('animate-image')

const file = (option: string, is: string, names: RegExp): CompanionFile => ({ option, is, names })
const vae = (is: string, names: RegExp) => file('--vae', is, names)
const clipL = file('--clip_l', 'the text encoder CLIP-L', /(^|[-_.])clip[-_]?l\b/)
const clipG = file('--clip_g', 'the text encoder CLIP-G', /(^|[-_.])clip[-_]?g\b/)
const clipVision = file('--clip_vision', 'the image encoder CLIP vision H', /clip[-_]?vision/)
const t5 = file('--t5xxl', 'the text encoder T5-XXL', /^(?!umt5).*t5/)
const umt5 = file('--t5xxl', 'the text encoder UMT5-XXL', /umt5/)
const llm = (is: string, names: RegExp) => file('--llm', `the text encoder ${is}`, names)
const fluxVae = vae('the VAE of FLUX.1 (ae.safetensors)', /^(ae|flux.*vae.*)\.(safetensors|sft|gguf)$/)
const anyVae = vae('its VAE', /vae/)
const wanVae = vae('the VAE of Wan 2.1', /wan.*2[._]?1.*vae|^wan_vae/)
const qwenVae = vae('the VAE of Qwen-Image', /qwen.*vae/)
const qwenVl = llm('Qwen2.5-VL-7B', /qwen[-_.]?2[._]5[-_.]?vl/)

const family = (
  title: string,
  tasks: readonly Task[],
  defaults: FamilyDefaults,
  companions?: readonly CompanionFile[],
): DiffusionFamily => ({ title, tasks, defaults, companions })
const image = (steps: number, guidance: number, side = 1024): FamilyDefaults => ({
  num_inference_steps: steps,
  guidance_scale: guidance,
  width: side,
  height: side,
})
const video = (
  steps: number,
  guidance: number,
  [width, height]: readonly [width: number, height: number],
  [num_frames, fps]: readonly [frames: number, fps: number],
): FamilyDefaults => ({ num_inference_steps: steps, guidance_scale: guidance, width, height, num_frames, fps })
const wanVideo = video(50, 5, [832, 480], [81, 16])

/**
 * The families of image and video models. Sources: the pipelines of diffusers 0.40 for defaults, the documentation of
 * stable-diffusion.cpp (August 2026) for the further files.
 */
export const diffusionFamilies = {
  sd1: family('Stable Diffusion 1.x', images, image(50, 7.5, 512), [anyVae, clipL]),
  sd2: family('Stable Diffusion 2.x', images, image(50, 7.5, 768), [anyVae, clipL]),
  sdxl: family('Stable Diffusion XL', images, image(50, 5), [anyVae, clipL, clipG]),
  sd3: family('Stable Diffusion 3', images, image(28, 7), [anyVae, clipL, clipG, t5]),
  flux: family('FLUX.1', drawings, image(28, 3.5), [fluxVae, clipL, t5]),
  'flux-fill': family('FLUX.1 Fill', tasksBy('inpaint'), image(50, 30), [fluxVae, clipL, t5]),
  'flux-kontext': family('FLUX.1 Kontext', edits, image(28, 3.5), [fluxVae, clipL, t5]),
  flux2: family('FLUX.2', drawings, image(50, 4), [
    vae('the VAE of FLUX.2', /flux[-_.]?2.*(ae|vae)/),
    llm('of this FLUX.2 model (dev: Mistral Small 3.2; klein: Qwen3)', /mistral|qwen[-_.]?3/),
  ]),
  chroma: family('Chroma', drawings, image(28, 4), [fluxVae, t5]),
  'qwen-image': family('Qwen-Image', drawings, image(50, 4), [qwenVae, qwenVl]),
  'qwen-image-edit': family('Qwen-Image-Edit', edits, image(50, 4), [qwenVae, qwenVl]),
  'z-image': family('Z-Image', drawings, image(50, 5), [fluxVae, llm('Qwen3-4B', /qwen[-_.]?3[-_.]?4b/)]),
  lumina2: family('Lumina 2', creation, image(30, 4)),
  hidream: family('HiDream-I1', creation, image(50, 5)),
  aura: family('AuraFlow', creation, image(50, 3.5)),
  pixart: family('PixArt', creation, image(20, 4.5)),
  sana: family('Sana', creation, image(20, 4.5)),
  wan: family('Wan', textToVideo, wanVideo, [wanVae, umt5]),
  'wan-i2v': family('Wan image-to-video', imageToVideo, wanVideo, [wanVae, umt5]),
  'wan2.1-i2v': family('Wan 2.1 image-to-video', imageToVideo, wanVideo, [wanVae, umt5, clipVision]),
  'wan2.2-ti2v': family('Wan 2.2 text- and image-to-video', videos, video(50, 5, [1280, 704], [121, 24]), [
    vae('the VAE of Wan 2.2', /wan.*2[._]?2.*vae/),
    umt5,
  ]),
  ltx: family('LTX-Video', videos, video(50, 3, [704, 512], [161, 25])),
  ltx2: family('LTX-2', videos, video(30, 3, [768, 512], [121, 24]), [
    vae('the video VAE of LTX-2', /ltx.*video.*vae/),
    file('--audio-vae', 'the audio VAE of LTX-2', /ltx.*audio.*vae/),
    llm('Gemma 3 12B', /gemma[-_.]?3/),
    file('--embeddings-connectors', 'the embeddings connectors of LTX-2', /ltx.*connectors/),
  ]),
  hunyuan: family('HunyuanVideo', textToVideo, video(50, 6, [1280, 720], [121, 24]), [
    vae('the VAE of HunyuanVideo', /hunyuan.*vae/),
    qwenVl,
    file('--t5xxl', 'the text encoder ByT5 small', /byt5/),
  ]),
  cogvideo: family('CogVideoX', textToVideo, video(50, 6, [720, 480], [49, 8])),
  mochi: family('Mochi', textToVideo, video(64, 4.5, [848, 480], [19, 30])),
  cosmos: family('Cosmos', textToVideo, video(36, 7, [1280, 704], [121, 30])),
  svd: family('Stable Video Diffusion', imageToVideo, video(25, 3, [1024, 576], [25, 7])),
}

export type DiffusionFamilyName = keyof typeof diffusionFamilies

export const familyOf = (name: DiffusionFamilyName): DiffusionFamily => diffusionFamilies[name]

/** A model was distilled for fewer steps and without guidance; only its name tells. */
interface Distilled {
  name: RegExp
  defaults: Partial<FamilyDefaults>
}

/** By the model cards of their publishers, the most special name first. */
const distilled: readonly Distilled[] = [
  { name: /schnell/, defaults: { num_inference_steps: 4, guidance_scale: 1 } },
  { name: /z[-_.]?image[-_.]?turbo/, defaults: { num_inference_steps: 9, guidance_scale: 1 } },
  {
    name: /sdxl[-_.]?turbo|sd[-_.]?turbo/,
    defaults: { num_inference_steps: 4, guidance_scale: 1, width: 512, height: 512 },
  },
  {
    name: /turbo|lightning|hyper[-_.]?sd|(^|[-_./])lcm([-_./]|$)/,
    defaults: { num_inference_steps: 8, guidance_scale: 1 },
  },
]

/**
 * Returns the defaults of a model with one of these names: those of its family, unless a name says that it was distilled.
 * `lightning-4step` in a name is the number of steps.
 */
export function distilledDefaults(family: FamilyDefaults, names: readonly string[]): FamilyDefaults {
  for (const { name, defaults } of distilled) {
    const found = names.map(one => one.toLowerCase()).find(one => name.test(one))
    if (found === undefined) continue
    const steps = Number(/(\d{1,2})[-_ ]?steps?\b/.exec(found)?.[1] ?? defaults.num_inference_steps)
    return { ...family, ...defaults, num_inference_steps: steps }
  }
  return family
}
