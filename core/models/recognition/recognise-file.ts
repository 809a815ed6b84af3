import { invalidValue } from '../../failure.ts'
import { tasksBy } from '../../schemas/task.ts'
import type { GgufHeader } from '../gguf-header.ts'
import { type CompanionFile, type DiffusionFamily, familyOf } from './diffusion-families.ts'
import { type DiffusionFile, diffusionFileOf, familyByName } from './diffusion-tensors.ts'
import { loraAdvice, loraOf } from './lora.ts'
import type { Recognition } from './recognition.ts'
import type { SafetensorsHeader } from './safetensors-header.ts'

/** Files that are parts of a model, by the beginning of the name of one of their tensors. */
const parts: readonly [pattern: RegExp, is: string][] = [
  [/^(control_model\.|controlnet_|input_hint_block\.|time_embedding\.linear_1.*\bcontrolnet)/, 'a ControlNet'],
  [/^(decoder|encoder)\.(conv_in|conv1|down|up|mid|middle|downsamples)\b|^first_stage_model\./, 'a VAE'],
  [/^(encoder\.block|shared)\.|^encoder\.final_layer_norm/, 'a T5 text encoder'],
  [/^(text_model|cond_stage_model|transformer\.text_model)\./, 'a CLIP text encoder'],
  [/^(vision_model|visual)\./, 'an image encoder'],
  [/^(body\.\d+\.rdb|RRDB_trunk\.|model\.\d+\.sub\.)/, 'an upscaler'],
  [/^(emb_params|clip_l|clip_g)$/, 'an embedding (textual inversion)'],
  [
    /^(model\.)?(language_model\.)?(model\.)?layers\.\d+\.(self_attn|mlp)\./,
    'the weights of a text model without its configuration',
  ],
]

/**
 * Returns what a safetensors file is, by its header. Throws Failure `invalid_value`, which says what the file is and
 * how it is used, if it is not a model by itself.
 */
export function recogniseSafetensors(path: string, header: SafetensorsHeader): Recognition {
  const lora = loraOf(header)
  if (lora) throw invalidValue(loraAdvice(path, lora))
  const found = diffusionFileOf(header.tensors)
  if (found) return recogniseDiffusion(path, found)
  const names = [...header.tensors.keys()]
  const [, part] = parts.find(([pattern]) => names.some(name => pattern.test(name))) ?? []
  throw invalidValue(
    part === undefined
      ? `'${path}' is not a model that infer knows. If an engine can load it, name the engine and its task: --engine --task`
      : `'${path}' is ${part}, not a whole model. Add the ${/text model/.test(part) ? 'folder that contains it, with its config.json' : 'model that needs it'}.`,
  )
}

/** Returns how an image or video model in one file, safetensors or GGUF, is run. Throws Failure if no engine can. */
function recogniseDiffusion(path: string, file: DiffusionFile): Recognition {
  const family: DiffusionFamily = familyOf(familyByName(file.family, path.split('/').at(-1)!))
  if (!family.companions)
    throw invalidValue(
      `'${path}' is ${family.title}, which sd-server does not run from one file. Add its folder of diffusers, or a ComfyUI graph that loads it: infer model add comfyui:workflow.json`,
    )
  const companions = family.companions.filter(
    ({ option }) => !(option === '--vae' ? file.hasVae : file.hasTextEncoder && isTextEncoder(option)),
  )
  return {
    is: `${family.title}${companions.length === 0 ? ', complete in one file' : ', the diffusion model in one file'}`,
    tasks: file.isInpainting ? tasksBy('inpaint') : family.tasks,
    because: file.isInpainting ? 'its first layer takes a mask' : `its tensors are those of ${family.title}`,
    engines: ['sd-server'],
    defaults: family.defaults,
    companions,
    isDiffusionOnly: !file.isCheckpoint,
  }
}

const isTextEncoder = (option: string): boolean => !/vae|vision/.test(option)

/**
 * Finds the further files of a model among files beside it. Returns the options of sd-server for those that are there,
 * and what is missing.
 */
export function findCompanions(
  companions: readonly CompanionFile[],
  files: readonly string[],
): { args: string[]; missing: CompanionFile[] } {
  const args: string[] = []
  const missing: CompanionFile[] = []
  for (const one of companions) {
    const found = files.find(
      path => /\.(safetensors|sft|gguf)$/i.test(path) && one.names.test(path.split('/').at(-1)!.toLowerCase()),
    )
    if (found === undefined) missing.push(one)
    else args.push(one.option, found)
  }
  return { args, missing }
}

/** Text encoders of image models, which generate nothing by themselves. */
const encoders: ReadonlySet<string> = new Set(['t5', 't5encoder'])

/**
 * Returns what a GGUF file is that llama.cpp does not run; null for a text model. Throws Failure for a file that is only
 * a part of a model.
 */
export function recogniseGguf(path: string, { architecture, diffusion, kind }: GgufHeader): Recognition | null {
  if (diffusion) return recogniseDiffusion(path, diffusion)
  if (kind !== 'model') return null
  if (architecture === 'whisper')
    return {
      is: 'Whisper, GGUF',
      tasks: tasksBy('transcribe', 'translate'),
      because: 'Whisper transcribes and translates',
      engines: ['whisper-server'],
    }
  if (encoders.has(architecture))
    throw invalidValue(`'${path}' is a T5 text encoder, not a whole model. Add the image or video model that needs it.`)
  return null
}
