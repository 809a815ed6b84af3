import { expect, test } from 'vitest'
import { recogniseSafetensors } from '../../../../core/models/recognition/recognise-file.ts'
import { parseSafetensors, type SafetensorsHeader } from '../../../../core/models/recognition/safetensors-header.ts'
import { known, safetensors } from './_files.ts'

/** Parses a file in memory, in pieces of exactly the requested length. */
function parse(file: Buffer, size = file.length): SafetensorsHeader {
  const parser = parseSafetensors('m.safetensors', size)
  let step = parser.next()
  while (!step.done) {
    const { at, bytes } = step.value
    step = parser.next(file.subarray(at, at + bytes))
  }
  return step.value
}

const recognise = (file: Buffer, name = 'm.safetensors') => recogniseSafetensors(`/models/${name}`, parse(file))

test.each<[keyof typeof known, string, string, string[], string]>([
  ['sd15', 'm', 'Stable Diffusion 1.x, complete', ['text-to-image', 'image-to-image', 'inpainting'], ''],
  ['sd15Inpainting', 'm', 'Stable Diffusion 1.x, complete', ['inpainting'], ''],
  ['sd21', 'm', 'Stable Diffusion 2.x, complete', ['text-to-image', 'image-to-image', 'inpainting'], ''],
  ['sdxl', 'm', 'Stable Diffusion XL, complete', ['text-to-image', 'image-to-image', 'inpainting'], ''],
  [
    'sd3Medium',
    'm',
    'Stable Diffusion 3, the diffusion model',
    ['text-to-image', 'image-to-image', 'inpainting'],
    '--clip_l --clip_g --t5xxl',
  ],
  ['fluxDev', 'flux1-dev', 'FLUX.1, ', ['text-to-image', 'image-to-image'], '--vae --clip_l --t5xxl'],
  ['fluxDev', 'flux1-kontext-dev', 'FLUX.1 Kontext, ', ['image-to-image'], '--vae --clip_l --t5xxl'],
  ['fluxFill', 'm', 'FLUX.1 Fill, ', ['inpainting'], '--vae --clip_l --t5xxl'],
  ['flux2', 'm', 'FLUX.2, ', ['text-to-image', 'image-to-image'], '--vae --llm'],
  ['chroma', 'm', 'Chroma, ', ['text-to-image', 'image-to-image'], '--vae --t5xxl'],
  ['wan21T2v', 'm', 'Wan, the diffusion model', ['text-to-video'], '--vae --t5xxl'],
  ['wan21I2v', 'm', 'Wan 2.1 image-to-video, ', ['image-to-video'], '--vae --t5xxl --clip_vision'],
  ['wan22I2v', 'm', 'Wan image-to-video, ', ['image-to-video'], '--vae --t5xxl'],
  ['wan22Ti2v', 'm', 'Wan 2.2 text- and image-to-video, ', ['text-to-video', 'image-to-video'], '--vae --t5xxl'],
  ['qwenImage', 'm', 'Qwen-Image, ', ['text-to-image', 'image-to-image'], '--vae --llm'],
  ['qwenImage', 'qwen-image-edit-2509', 'Qwen-Image-Edit, ', ['image-to-image'], '--vae --llm'],
  ['zImage', 'm', 'Z-Image, ', ['text-to-image', 'image-to-image'], '--vae --llm'],
  ['ltx2', 'm', 'LTX-2, ', ['text-to-video', 'image-to-video'], '--vae --audio-vae --llm --embeddings-connectors'],
  ['hunyuan', 'm', 'HunyuanVideo, ', ['text-to-video'], '--vae --llm --t5xxl'],
])('%s as %s is %s', (tensors, name, is, tasks, companions) => {
  const found = recognise(safetensors(known[tensors]), `${name}.safetensors`)
  expect(found.is).toContain(is)
  expect(found.tasks).toEqual(tasks.map(task => `slug/${task}`))
  expect(found.engines).toEqual(['sd-server'])
  expect(found.companions!.map(({ option }) => option).join(' ')).toBe(companions)
})

test('a file that sd-server does not run says what does', () => {
  expect(() => recognise(safetensors(known.ltx))).toThrow(
    /'\/models\/m\.safetensors' is LTX-Video, which sd-server does not run from one file\. Add its folder of diffusers, or a ComfyUI graph/,
  )
})

const rank = 16
test.each<[string, Record<string, readonly number[]>, Record<string, string>, string]>([
  [
    'by its metadata',
    { 'lora_unet_x.lora_down.weight': [16, 1] },
    { ss_base_model_version: 'sdxl_base_v1-0' },
    'Stable Diffusion XL',
  ],
  [
    'by its metadata',
    { 'lora_unet_x.lora_down.weight': [16, 1] },
    { ss_base_model_version: 'sd_v1' },
    'Stable Diffusion 1.x',
  ],
  ['by its metadata', { 'x.lora_A.weight': [16, 1] }, { 'modelspec.architecture': 'flux-1-dev/lora' }, 'FLUX.1'],
  [
    'kohya for SD 1.x, by its widths',
    {
      'lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight': [rank, 768],
      'lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_q.lora_down.weight': [rank, 320],
      'lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_q.alpha': [],
    },
    {},
    'Stable Diffusion 1.x',
  ],
  [
    'kohya for SD 2.x, by its widths',
    {
      'lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_k.lora_down.weight': [rank, 1024],
      'lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_q.lora_down.weight': [rank, 320],
    },
    {},
    'Stable Diffusion 2.x',
  ],
  [
    'kohya for SDXL',
    { 'lora_te2_text_model_encoder_layers_0_mlp_fc1.lora_down.weight': [rank, 1280] },
    {},
    'Stable Diffusion XL',
  ],
  ['kohya for FLUX.1', { 'lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight': [rank, 3072] }, {}, 'FLUX.1'],
  [
    'peft for FLUX.1',
    { 'transformer.single_transformer_blocks.0.attn.to_k.lora_A.weight': [rank, 3072] },
    {},
    'FLUX.1',
  ],
  ['Wan', { 'diffusion_model.blocks.0.cross_attn.k.lora_A.weight': [rank, 5120] }, {}, 'Wan'],
  ['Qwen-Image', { 'transformer_blocks.0.img_mlp.net.2.lora_A.default.weight': [rank, 3072] }, {}, 'Qwen-Image'],
  ['an unknown base', { 'lora_unet_x.hada_w1_a': [16, 1] }, {}, 'an image or video model'],
])('a LoRA, %s, is not a model and says for which base it is', (_, tensors, metadata, base) => {
  expect(() => recognise(safetensors(tensors, metadata), 'style.safetensors')).toThrow(
    `'/models/style.safetensors' is a LoRA for ${base}, not a model. Add a model of that family that runs with the engine python, and attach the LoRA to its entry in infer.yaml: loras: [/models/style.safetensors=1]`,
  )
})

test('a LoRA of a text model names the option of its engine', () => {
  const file = safetensors({ 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight': [8, 4096] })
  expect(() => recognise(file)).toThrow(/is a LoRA of a text model, not a model\. .*--adapter-of <base>/)
})

test.each<[string, Record<string, readonly number[]>, string]>([
  ['a VAE', { 'decoder.conv_in.weight': [512, 16, 3, 3] }, 'is a VAE, not a whole model. Add the model that needs it.'],
  ['CLIP', { 'text_model.embeddings.token_embedding.weight': [49408, 768] }, 'is a CLIP text encoder'],
  ['T5', { 'encoder.block.0.layer.0.SelfAttention.q.weight': [4096, 4096] }, 'is a T5 text encoder'],
  ['a ControlNet', { 'control_model.input_blocks.0.0.weight': [320, 4, 3, 3] }, 'is a ControlNet'],
  [
    'weights of a text model',
    { 'model.layers.0.self_attn.q_proj.weight': [64, 64] },
    'Add the folder that contains it',
  ],
  ['anything else', { a: [1] }, 'is not a model that infer knows. If an engine can load it'],
])('%s is refused with what it is', (_, tensors, text) => {
  expect(() => recognise(safetensors(tensors))).toThrow(text)
})

const lengthOf = (value: bigint, body: string): Buffer => {
  const start = Buffer.alloc(8)
  start.writeBigUInt64LE(value)
  return Buffer.concat([start, Buffer.from(body)])
}

test.each<[string, Buffer, string]>([
  ['an empty file', Buffer.alloc(0), 'it is too short'],
  ['a truncated header', safetensors(known.sdxl).subarray(0, 200), 'it ends in the middle of its header'],
  ['a header of 2^60 bytes', lengthOf(1n << 60n, '{}'), 'its header would have 1152921504606846976 bytes'],
  ['a header that is not JSON', lengthOf(5n, '{"a":'), 'its header is not JSON'],
  ['a header that is a list', lengthOf(2n, '[]'), 'its header is not a JSON object'],
  ['a tensor without a shape', lengthOf(15n, '{"a":{"x":"y"}}'), "its tensor 'a' has no shape"],
  ['a negative shape', lengthOf(18n, '{"a":{"shape":[-1]}}'.slice(0, 18)), 'not JSON'],
  ['a shape of texts', lengthOf(21n, '{"a":{"shape":["1"]}}'), "its tensor 'a' has no shape"],
  ['no tensors', lengthOf(2n, '{}'), 'contains no tensors'],
])('%s is refused', (_, file, text) => {
  expect(() => parse(file)).toThrow(text)
})

test('a file that shrinks while it is read is refused', () => {
  const file = safetensors(known.sd15)
  expect(() => parse(file.subarray(0, 100), file.length)).toThrow('was truncated while it was read')
})
