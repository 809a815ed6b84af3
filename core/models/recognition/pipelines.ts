import { objectOf } from '../../json.ts'
import { type Operation, type Task, tasksBy } from '../../schemas/task.ts'
import { type DiffusionFamilyName, familyOf } from './diffusion-families.ts'
import type { Recognition, SuggestedEngine } from './recognition.ts'

interface Pipeline {
  family: DiffusionFamilyName
  /** Where they differ from those of the family. */
  tasks?: readonly Task[]
  inputImages?: number
}

const images = tasksBy('create-image', 'edit-image', 'inpaint')
const fromImage = tasksBy('animate-image')

/** The family of each pipeline of diffusers 0.40, by `_class_name` of model_index.json, and where it differs from it. */
const pipelines: Readonly<Record<string, DiffusionFamilyName | Pipeline>> = {
  StableDiffusionPipeline: 'sd1',
  StableDiffusionImg2ImgPipeline: { family: 'sd1', tasks: tasksBy('edit-image') },
  StableDiffusionInpaintPipeline: { family: 'sd1', tasks: tasksBy('inpaint') },
  StableDiffusionXLPipeline: 'sdxl',
  StableDiffusionXLImg2ImgPipeline: { family: 'sdxl', tasks: tasksBy('edit-image') },
  StableDiffusionXLInpaintPipeline: { family: 'sdxl', tasks: tasksBy('inpaint') },
  StableDiffusion3Pipeline: 'sd3',
  FluxPipeline: { family: 'flux', tasks: images },
  FluxFillPipeline: 'flux-fill',
  FluxKontextPipeline: 'flux-kontext',
  Flux2Pipeline: 'flux2',
  Flux2KleinPipeline: 'flux2',
  ChromaPipeline: 'chroma',
  QwenImagePipeline: { family: 'qwen-image', tasks: images },
  QwenImageEditPipeline: 'qwen-image-edit',
  QwenImageEditPlusPipeline: { family: 'qwen-image-edit', inputImages: 3 },
  ZImagePipeline: 'z-image',
  Lumina2Pipeline: 'lumina2',
  LuminaText2ImgPipeline: 'lumina2',
  HiDreamImagePipeline: 'hidream',
  AuraFlowPipeline: 'aura',
  PixArtAlphaPipeline: 'pixart',
  PixArtSigmaPipeline: 'pixart',
  SanaPipeline: 'sana',
  WanPipeline: 'wan',
  WanImageToVideoPipeline: 'wan-i2v',
  LTXPipeline: 'ltx',
  LTXImageToVideoPipeline: { family: 'ltx', tasks: fromImage },
  LTXConditionPipeline: 'ltx',
  LTX2Pipeline: 'ltx2',
  LTX2ImageToVideoPipeline: { family: 'ltx2', tasks: fromImage },
  HunyuanVideoPipeline: 'hunyuan',
  HunyuanVideoImageToVideoPipeline: { family: 'hunyuan', tasks: fromImage },
  HunyuanVideo15Pipeline: 'hunyuan',
  HunyuanVideo15ImageToVideoPipeline: { family: 'hunyuan', tasks: fromImage },
  CogVideoXPipeline: 'cogvideo',
  CogVideoXImageToVideoPipeline: { family: 'cogvideo', tasks: fromImage },
  MochiPipeline: 'mochi',
  CosmosTextToWorldPipeline: 'cosmos',
  StableVideoDiffusionPipeline: 'svd',
}

/** Families that these servers run, by their lists of models in 2026. */
const served: ReadonlySet<DiffusionFamilyName> = new Set([
  'sd3',
  'flux',
  'flux-kontext',
  'flux2',
  'qwen-image',
  'qwen-image-edit',
  'z-image',
  'wan',
  'wan-i2v',
  'wan2.2-ti2v',
  'ltx2',
  'hunyuan',
])
/** Families that sd-server loads from a folder of diffusers. */
const readByCpp: ReadonlySet<DiffusionFamilyName> = new Set(['sd1', 'sd2', 'sdxl'])

/** Returns what a folder of diffusers is, by the content of its model_index.json. Null if it names no pipeline. */
export function recognisePipeline(index: unknown): Recognition | null {
  const { _class_name: name } = objectOf(index)
  if (typeof name !== 'string' || !/^\w{1,100}$/.test(name)) return null
  if (!Object.hasOwn(pipelines, name)) return unknownPipeline(name)
  const found = pipelines[name]!
  const known: Pipeline = typeof found === 'string' ? { family: found } : found
  const family = familyOf(known.family)
  const engines: SuggestedEngine[] = ['python']
  if (served.has(known.family)) engines.push('sglang-diffusion', 'vllm-omni')
  if (readByCpp.has(known.family)) engines.push('sd-server')
  return {
    is: `${family.title}, a diffusers pipeline (${name})`,
    tasks: known.tasks ?? family.tasks,
    because: `${name} makes ${known.tasks === fromImage || family.defaults.num_frames ? 'videos' : 'images'}`,
    engines,
    defaults: family.defaults,
    inputImages: known.inputImages,
  }
}

function unknownPipeline(name: string): Recognition {
  const operation: Operation = /ImageToVideo|Img2Vid|I2V/.test(name)
    ? 'animate-image'
    : /Video|Wan|LTX|Movie|Animate|World/.test(name)
      ? 'create-video'
      : /Inpaint|Fill/.test(name)
        ? 'inpaint'
        : /Img2Img|Edit|Kontext|Pix2Pix/.test(name)
          ? 'edit-image'
          : 'create-image'
  return {
    is: `a diffusers pipeline (${name})`,
    tasks: tasksBy(operation),
    because: `guessed from the name ${name}; --task sets others`,
    engines: ['python'],
  }
}
