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
const videos = tasksBy('create-video', 'animate-image')

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
const qwenVl = llm('Qwen2.5-VL-7B', /qwen[-_.]?2[._]5[-_.]?vl/)

const square = (steps: number, guidance: number, side = 1024): FamilyDefaults => ({
  num_inference_steps: steps,
  guidance_scale: guidance,
  width: side,
  height: side,
})
const wanDefaults = { num_inference_steps: 50, guidance_scale: 5, width: 832, height: 480, num_frames: 81, fps: 16 }

/**
 * The families of image and video models. Sources: the pipelines of diffusers 0.40 for defaults, the documentation of
 * stable-diffusion.cpp (August 2026) for the further files.
 */
export const diffusionFamilies = {
  sd1: { title: 'Stable Diffusion 1.x', tasks: images, defaults: square(50, 7.5, 512), companions: [anyVae, clipL] },
  sd2: { title: 'Stable Diffusion 2.x', tasks: images, defaults: square(50, 7.5, 768), companions: [anyVae, clipL] },
  sdxl: {
    title: 'Stable Diffusion XL',
    tasks: images,
    defaults: square(50, 5),
    companions: [anyVae, clipL, clipG],
  },
  sd3: {
    title: 'Stable Diffusion 3',
    tasks: images,
    defaults: square(28, 7),
    companions: [anyVae, clipL, clipG, t5],
  },
  flux: { title: 'FLUX.1', tasks: drawings, defaults: square(28, 3.5), companions: [fluxVae, clipL, t5] },
  'flux-fill': {
    title: 'FLUX.1 Fill',
    tasks: tasksBy('inpaint'),
    defaults: square(50, 30),
    companions: [fluxVae, clipL, t5],
  },
  'flux-kontext': {
    title: 'FLUX.1 Kontext',
    tasks: tasksBy('edit-image'),
    defaults: square(28, 3.5),
    companions: [fluxVae, clipL, t5],
  },
  flux2: {
    title: 'FLUX.2',
    tasks: drawings,
    defaults: square(50, 4),
    companions: [
      vae('the VAE of FLUX.2', /flux[-_.]?2.*(ae|vae)/),
      llm('of this FLUX.2 model (dev: Mistral Small 3.2; klein: Qwen3)', /mistral|qwen[-_.]?3/),
    ],
  },
  chroma: { title: 'Chroma', tasks: drawings, defaults: square(28, 4), companions: [fluxVae, t5] },
  'qwen-image': {
    title: 'Qwen-Image',
    tasks: drawings,
    defaults: square(50, 4),
    companions: [vae('the VAE of Qwen-Image', /qwen.*vae/), qwenVl],
  },
  'qwen-image-edit': {
    title: 'Qwen-Image-Edit',
    tasks: tasksBy('edit-image'),
    defaults: square(50, 4),
    companions: [vae('the VAE of Qwen-Image', /qwen.*vae/), qwenVl],
  },
  'z-image': {
    title: 'Z-Image',
    tasks: drawings,
    defaults: square(50, 5),
    companions: [fluxVae, llm('Qwen3-4B', /qwen[-_.]?3[-_.]?4b/)],
  },
  lumina2: { title: 'Lumina 2', tasks: tasksBy('create-image'), defaults: square(30, 4) },
  hidream: { title: 'HiDream-I1', tasks: tasksBy('create-image'), defaults: square(50, 5) },
  aura: { title: 'AuraFlow', tasks: tasksBy('create-image'), defaults: square(50, 3.5) },
  pixart: { title: 'PixArt', tasks: tasksBy('create-image'), defaults: square(20, 4.5) },
  sana: { title: 'Sana', tasks: tasksBy('create-image'), defaults: square(20, 4.5) },
  wan: {
    title: 'Wan',
    tasks: tasksBy('create-video'),
    defaults: wanDefaults,
    companions: [wanVae, umt5],
  },
  'wan-i2v': {
    title: 'Wan image-to-video',
    tasks: tasksBy('animate-image'),
    defaults: wanDefaults,
    companions: [wanVae, umt5],
  },
  'wan2.1-i2v': {
    title: 'Wan 2.1 image-to-video',
    tasks: tasksBy('animate-image'),
    defaults: wanDefaults,
    companions: [wanVae, umt5, clipVision],
  },
  'wan2.2-ti2v': {
    title: 'Wan 2.2 text- and image-to-video',
    tasks: videos,
    defaults: { ...wanDefaults, width: 1280, height: 704, num_frames: 121, fps: 24 },
    companions: [vae('the VAE of Wan 2.2', /wan.*2[._]?2.*vae/), umt5],
  },
  ltx: {
    title: 'LTX-Video',
    tasks: videos,
    defaults: { num_inference_steps: 50, guidance_scale: 3, width: 704, height: 512, num_frames: 161, fps: 25 },
  },
  ltx2: {
    title: 'LTX-2',
    tasks: videos,
    defaults: { num_inference_steps: 30, guidance_scale: 3, width: 768, height: 512, num_frames: 121, fps: 24 },
    companions: [
      vae('the video VAE of LTX-2', /ltx.*video.*vae/),
      file('--audio-vae', 'the audio VAE of LTX-2', /ltx.*audio.*vae/),
      llm('Gemma 3 12B', /gemma[-_.]?3/),
      file('--embeddings-connectors', 'the embeddings connectors of LTX-2', /ltx.*connectors/),
    ],
  },
  hunyuan: {
    title: 'HunyuanVideo',
    tasks: tasksBy('create-video'),
    defaults: { num_inference_steps: 50, guidance_scale: 6, width: 1280, height: 720, num_frames: 121, fps: 24 },
    companions: [
      vae('the VAE of HunyuanVideo', /hunyuan.*vae/),
      qwenVl,
      file('--t5xxl', 'the text encoder ByT5 small', /byt5/),
    ],
  },
  cogvideo: {
    title: 'CogVideoX',
    tasks: tasksBy('create-video'),
    defaults: { num_inference_steps: 50, guidance_scale: 6, width: 720, height: 480, num_frames: 49, fps: 8 },
  },
  mochi: {
    title: 'Mochi',
    tasks: tasksBy('create-video'),
    defaults: { num_inference_steps: 64, guidance_scale: 4.5, width: 848, height: 480, num_frames: 19, fps: 30 },
  },
  cosmos: {
    title: 'Cosmos',
    tasks: tasksBy('create-video'),
    defaults: { num_inference_steps: 36, guidance_scale: 7, width: 1280, height: 704, num_frames: 121, fps: 30 },
  },
  svd: {
    title: 'Stable Video Diffusion',
    tasks: tasksBy('animate-image'),
    defaults: { num_inference_steps: 25, guidance_scale: 3, width: 1024, height: 576, num_frames: 25, fps: 7 },
  },
} as const satisfies Record<string, DiffusionFamily>

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
