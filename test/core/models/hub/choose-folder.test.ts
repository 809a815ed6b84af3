import { expect, test } from 'vitest'
import { chooseFiles, type HubFile } from '../../../../core/models/hub/choose.ts'

const files = (paths: readonly string[]): HubFile[] =>
  paths.map(path => ({ path, size: 1000, hash: { kind: 'sha256', hex: 'a'.repeat(64) } }))
const chosen = (paths: readonly string[], index?: unknown, requested: string | null = null) =>
  chooseFiles('o/n', files(paths), requested, index).files.map(({ path }) => path)

/** Stable Diffusion XL as it is on the hub, without the pictures. */
const sdxl = [
  'model_index.json',
  'sd_xl_base_1.0.safetensors',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  'text_encoder/model.fp16.safetensors',
  'text_encoder/model.safetensors',
  'text_encoder/model.onnx',
  'text_encoder/flax_model.msgpack',
  'text_encoder_2/config.json',
  'text_encoder_2/model.safetensors',
  'tokenizer/merges.txt',
  'tokenizer/vocab.json',
  'unet/config.json',
  'unet/diffusion_pytorch_model.fp16.safetensors',
  'unet/diffusion_pytorch_model.safetensors',
  'vae/config.json',
  'vae/diffusion_pytorch_model.fp16.safetensors',
  'vae/diffusion_pytorch_model.safetensors',
  'vae_1_0/config.json',
  'vae_1_0/diffusion_pytorch_model.safetensors',
  'vae_decoder/model.onnx',
]
const index = {
  _class_name: 'StableDiffusionXLPipeline',
  force_zeros_for_empty_prompt: true,
  scheduler: ['diffusers', 'EulerDiscreteScheduler'],
  text_encoder: ['transformers', 'CLIPTextModel'],
  text_encoder_2: ['transformers', 'CLIPTextModelWithProjection'],
  tokenizer: ['transformers', 'CLIPTokenizer'],
  unet: ['diffusers', 'UNet2DConditionModel'],
  vae: ['diffusers', 'AutoencoderKL'],
  image_encoder: [null, null],
}
const half = [
  'model_index.json',
  'scheduler/scheduler_config.json',
  'text_encoder/config.json',
  'text_encoder/model.fp16.safetensors',
  'text_encoder_2/config.json',
  'text_encoder_2/model.safetensors',
  'tokenizer/merges.txt',
  'tokenizer/vocab.json',
  'unet/config.json',
  'unet/diffusion_pytorch_model.fp16.safetensors',
  'vae/config.json',
  'vae/diffusion_pytorch_model.fp16.safetensors',
]

test('of a pipeline only its parts are chosen, in half precision where there is one', () => {
  expect(chosen(sdxl, index)).toEqual(half)
})

test('without a readable index all folders count as parts', () => {
  expect(chosen(sdxl)).toEqual(expect.arrayContaining([...half, 'vae_1_0/diffusion_pytorch_model.safetensors']))
})

test('weights in several files come with the index of their variant', () => {
  const paths = [
    'model_index.json',
    'transformer/config.json',
    'transformer/model.safetensors.index.json',
    'transformer/model.safetensors.index.bf16.json',
    'transformer/model-00001-of-00002.safetensors',
    'transformer/model.bf16-00001-of-00002.safetensors',
    'transformer/model-00001-of-00002.bf16.safetensors',
  ]
  expect(chosen(paths)).toEqual([
    'model_index.json',
    'transformer/config.json',
    'transformer/model.safetensors.index.bf16.json',
    'transformer/model.bf16-00001-of-00002.safetensors',
    'transformer/model-00001-of-00002.bf16.safetensors',
  ])
})

test.each<[string, string[], string[]]>([
  [
    'Whisper for CTranslate2',
    ['README.md', 'model.bin', 'config.json', 'vocabulary.txt', 'tokenizer.json'],
    ['model.bin', 'config.json', 'vocabulary.txt', 'tokenizer.json'],
  ],
  [
    'Kokoro',
    ['README.md', 'config.json', 'kokoro-v1_0.pth', 'voices/af_heart.pt', 'samples/a.wav'],
    ['config.json', 'kokoro-v1_0.pth', 'voices/af_heart.pt'],
  ],
  ['one voice for Piper', ['README.md', 'a.onnx', 'a.onnx.json'], ['a.onnx', 'a.onnx.json']],
  ['one checkpoint', ['README.md', 'm.safetensors', 'm.ckpt'], ['m.safetensors']],
  [
    'a LoRA of peft',
    ['adapter_config.json', 'adapter_model.safetensors'],
    ['adapter_config.json', 'adapter_model.safetensors'],
  ],
])('%s', (_, paths, files) => {
  expect(chosen(paths)).toEqual(files)
})

test('a named voice comes with its configuration', () => {
  const paths = ['a.onnx', 'a.onnx.json', 'b.onnx', 'b.onnx.json']
  expect(chosen(paths, undefined, 'b.onnx')).toEqual(['b.onnx', 'b.onnx.json'])
  expect(() => chosen(paths)).toThrow(
    'The repository o/n has 2 voices. Name one, such as hf:o/n:a.onnx. It has: a.onnx, b.onnx.',
  )
})
