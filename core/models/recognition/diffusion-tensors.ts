import type { DiffusionFamilyName } from './diffusion-families.ts'
import type { TensorSizes } from './safetensors-header.ts'

/** An image or video model in one file, recognised by its tensors. */
export interface DiffusionFile {
  family: DiffusionFamilyName
  /** Which parts the file has besides the diffusion model. */
  hasVae: boolean
  hasTextEncoder: boolean
  /** Whether its tensors are named as in a complete checkpoint, below `model.diffusion_model.`. */
  isCheckpoint: boolean
  /** Whether it only repaints masked parts: its first layer also takes the mask and the masked image. */
  isInpainting: boolean
}

const prefix = /^(model\.diffusion_model|diffusion_model|unet|transformer|net)\./
const checkpointPrefix = 'model.diffusion_model.'

/** Returns what image or video model has these tensors; null for all others. Source: the model loaders of
 * stable-diffusion.cpp (August 2026), the state dicts of diffusers 0.40. */
export function diffusionFileOf(tensors: TensorSizes): DiffusionFile | null {
  const sizes = new Map<string, number>()
  let isCheckpoint = false
  for (const [name, elements] of tensors) {
    isCheckpoint ||= name.startsWith(checkpointPrefix)
    sizes.set(name.replace(prefix, ''), elements)
  }
  const names = [...sizes.keys()]
  const starts = (...beginnings: string[]) => names.some(name => beginnings.some(one => name.startsWith(one)))
  const family = familyOfSizes(sizes, starts)
  if (!family) return null
  const first = sizes.get('input_blocks.0.0.weight') ?? sizes.get('conv_in.weight')
  return {
    family,
    hasVae: starts('first_stage_model.', 'vae.'),
    hasTextEncoder: starts('cond_stage_model.', 'conditioner.embedders.', 'text_encoders.', 'te.', 'text_model.'),
    isCheckpoint,
    // 320 filters of 3 × 3 over 9 channels: noise, mask and masked image.
    isInpainting: first === 320 * 9 * 9,
  }
}

type Starts = (...beginnings: string[]) => boolean

function familyOfSizes(sizes: TensorSizes, starts: Starts): DiffusionFamilyName | null {
  if (starts('input_blocks.', 'down_blocks.')) return unetOf(sizes, starts)
  if (sizes.has('double_stream_modulation_img.lin.weight')) return 'flux2'
  if (starts('txt_in.individual_token_refiner.')) return 'hunyuan'
  if (starts('distilled_guidance_layer.')) return 'chroma'
  if (starts('double_blocks.0.img_attn', 'single_transformer_blocks.0.')) {
    const input = sizes.get('img_in.weight') ?? sizes.get('x_embedder.weight')
    return input === 3072 * 384 ? 'flux-fill' : 'flux'
  }
  if (starts('joint_blocks.')) return 'sd3'
  if (sizes.has('transformer_blocks.0.img_mod.1.weight')) return 'qwen-image'
  if (starts('transformer_blocks.0.attn.add_q_proj.') && starts('pos_embed.')) return 'sd3'
  if (starts('double_layers.', 'joint_transformer_blocks.0.attn.add_q_proj.')) return 'aura'
  if (starts('double_stream_blocks.0.')) return 'hidream'
  if (sizes.has('cap_embedder.0.weight')) return sizes.get('cap_embedder.0.weight') === 2304 ? 'lumina2' : 'z-image'
  if (starts('adaln_single.') && starts('audio_patchify_proj.', 'audio_adaln_single.')) return 'ltx2'
  if (starts('adaln_single.')) return starts('patchify_proj.', 'proj_in.') ? 'ltx' : 'pixart'
  if (starts('blocks.0.adaln_modulation_cross_attn.', 'blocks.block0.')) return 'cosmos'
  if (starts('blocks.0.cross_attn.norm_k.', 'blocks.0.attn2.norm_k.') && starts('patch_embedding.'))
    return wanOf(sizes, starts)
  return null
}

function unetOf(sizes: TensorSizes, starts: Starts): DiffusionFamilyName | null {
  if ([...sizes.keys()].some(name => name.endsWith('time_mixer.mix_factor'))) return 'svd'
  if (starts('label_emb.', 'add_embedding.')) return 'sdxl'
  // The first attention to the text has 320 rows and as many columns as the text encoder has dimensions.
  const context =
    (sizes.get('input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight') ??
      sizes.get('down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k.weight') ??
      0) / 320
  return context === 768 ? 'sd1' : context === 1024 ? 'sd2' : null
}

/** The patch embedding has four weights for each dimension of the model and each channel of its input. */
function wanOf(sizes: TensorSizes, starts: Starts): DiffusionFamilyName {
  const width = Math.sqrt(sizes.get('blocks.0.self_attn.q.weight') ?? sizes.get('blocks.0.attn1.to_q.weight') ?? 0)
  const channels = (sizes.get('patch_embedding.weight') ?? 0) / 4 / width
  if (starts('img_emb.', 'condition_embedder.image_embedder.')) return 'wan2.1-i2v'
  if (channels === 48) return 'wan2.2-ti2v'
  return channels === 36 ? 'wan-i2v' : 'wan'
}

/** Names that GGUF files state as `general.architecture`. */
const architectures: Readonly<Record<string, DiffusionFamilyName>> = {
  sd1: 'sd1',
  sd2: 'sd2',
  sdxl: 'sdxl',
  sd3: 'sd3',
  flux: 'flux',
  flux2: 'flux2',
  chroma: 'chroma',
  qwen_image: 'qwen-image',
  lumina2: 'lumina2',
  z_image: 'z-image',
  hidream: 'hidream',
  aura: 'aura',
  wan: 'wan',
  ltxv: 'ltx',
  ltx2: 'ltx2',
  hyvid: 'hunyuan',
  hyvideo: 'hunyuan',
  cosmos: 'cosmos',
}

/** The same for a GGUF file. Its tensors decide: files of several families state the same architecture, or none. */
export function diffusionGgufOf(architecture: string | null, tensors: TensorSizes): DiffusionFile | null {
  const found = diffusionFileOf(tensors)
  const family = architectures[architecture ?? '']
  if (found || !family) return found
  return { family, hasVae: false, hasTextEncoder: false, isCheckpoint: false, isInpainting: false }
}

/** Returns a family whose tensors are those of another one, by the name of the file. */
export function familyByName(family: DiffusionFamilyName, name: string): DiffusionFamilyName {
  if (family === 'flux' && /kontext/i.test(name)) return 'flux-kontext'
  if (family === 'qwen-image' && /edit/i.test(name)) return 'qwen-image-edit'
  return family
}
