import { type DiffusionFamilyName, familyOf } from './diffusion-families.ts'
import type { SafetensorsHeader } from './safetensors-header.ts'

/** A LoRA: a small file that changes the style or contents of a model. */
export interface Lora {
  /** The family of models that it changes; null when the file does not tell. */
  base: DiffusionFamilyName | null
  /** Whether it changes a text model. */
  isText: boolean
}

const part = /(\.|_)lora(_|\.)?(down|up|A|B)(\.|$)|\.hada_w[12]_|\.lokr_w[12]|\.dora_scale$/

/** Bases as training programs write them, the longest names of a family first. */
const bases: readonly [name: RegExp, family: DiffusionFamilyName][] = [
  [/qwen[-_]?image/, 'qwen-image'],
  [/z[-_]?image/, 'z-image'],
  [/sd[-_]?xl|stable-diffusion-xl|pony|illustrious/, 'sdxl'],
  [/sd[-_]?3|stable-diffusion-3/, 'sd3'],
  [/sd[-_]?v?2|stable-diffusion-v2|stable-diffusion-2/, 'sd2'],
  [/sd[-_]?v?1|stable-diffusion-v1|stable-diffusion-1/, 'sd1'],
  [/flux[-_.]?2/, 'flux2'],
  [/flux/, 'flux'],
  [/wan[-_]?2|wan[-_]?video|^wan/, 'wan'],
  [/ltx[-_]?2/, 'ltx2'],
  [/ltx/, 'ltx'],
  [/hunyuan/, 'hunyuan'],
  [/lumina/, 'lumina2'],
  [/hidream/, 'hidream'],
]

/** Returns the family that the text of a training program names. */
const named = (text: string | undefined): DiffusionFamilyName | undefined =>
  text === undefined ? undefined : bases.find(([name]) => name.test(text.toLowerCase()))?.[1]

/** Returns the LoRA that a file contains; null for another file. */
export function loraOf({ metadata, tensors }: SafetensorsHeader): Lora | null {
  const names = [...tensors.keys()]
  if (names.filter(name => part.test(name)).length * 2 < names.length / 2) return null
  const has = (pattern: RegExp) => names.some(name => pattern.test(name))
  const isText =
    has(/^base_model\.model\.(model\.)?layers\.|\.self_attn\.[qkv]_proj\.lora_A/) &&
    !has(/unet|transformer_blocks|text_model/)
  return {
    base:
      named(metadata.get('ss_base_model_version')) ??
      named(metadata.get('modelspec.architecture')) ??
      (isText ? undefined : byNames(has, tensors)) ??
      null,
    isText,
  }
}

function byNames(
  has: (pattern: RegExp) => boolean,
  tensors: SafetensorsHeader['tensors'],
): DiffusionFamilyName | undefined {
  if (has(/transformer_blocks[._]0[._](img_mod|img_mlp)/)) return 'qwen-image'
  if (has(/joint_blocks/)) return 'sd3'
  if (has(/double_blocks|single_transformer_blocks|single_blocks/)) return 'flux'
  if (has(/(^|\.|lora_unet_)blocks[._]\d+[._](cross_attn|self_attn|ffn|attn2)/)) return 'wan'
  if (has(/lora_te2_|text_encoder_2\.|down_blocks[._]2[._]attentions[._]\d[._]transformer_blocks[._]9/)) return 'sdxl'
  if (has(/input_blocks[._]8[._]1[._]transformer_blocks[._]9/)) return 'sdxl'
  return unetByWidth(tensors)
}

/** The first attention of a U-Net: 320 wide, and as wide as the text encoder towards the text. */
function unetByWidth(tensors: SafetensorsHeader['tensors']): DiffusionFamilyName | undefined {
  const sizeOf = (letter: string) =>
    [...tensors].find(([name]) =>
      new RegExp(
        `(down_blocks[._]0[._]attentions[._]0|input_blocks[._]1[._]1)[._]transformer_blocks[._]0[._]attn2[._](processor[._])?to_${letter}[._]?(lora)?[._](lora_)?(down|A)`,
      ).test(name),
    )?.[1]
  const ratio = ((sizeOf('k') ?? 0) / (sizeOf('q') ?? 1)) * 320
  return ratio === 768 ? 'sd1' : ratio === 1024 ? 'sd2' : undefined
}

/** What a LoRA at this path is, and how to use it, as sentences. */
export function loraAdvice(path: string, { base, isText }: Lora): string {
  if (isText)
    return `'${path}' is a LoRA of a text model, not a model. Add its base model first, then the LoRA as an adapter of it: infer model add <path> --adapter-of <base>. vllm and sglang take the folder with adapter_config.json, gguf and llama-server a GGUF file.`
  const of = base === null ? 'an image or video model' : familyOf(base).title
  return `'${path}' is a LoRA for ${of}, not a model. Add a model of that family that runs with the engine python, and attach the LoRA to its entry in infer.yaml: loras: [${path}=1]`
}
