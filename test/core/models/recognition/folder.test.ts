import { expect, test } from 'vitest'
import { familyOf } from '../../../../core/models/recognition/diffusion-families.ts'
import { findCompanions } from '../../../../core/models/recognition/recognise-file.ts'
import { recogniseFolder } from '../../../../core/models/recognition/recognise-folder.ts'
import { chooseEngine, type SuggestedEngine } from '../../../../core/models/recognition/recognition.ts'

const recognise = (json: Record<string, unknown>, files: string[] = [], name = 'owner/name') =>
  recogniseFolder({ name, files: [...Object.keys(json), ...files], json: new Map(Object.entries(json)) })

test.each<[string, string[], SuggestedEngine[], string]>([
  ['StableDiffusionPipeline', ['text-to-image', 'image-to-image', 'inpainting'], ['python', 'sd-server'], '512×512'],
  [
    'StableDiffusionXLPipeline',
    ['text-to-image', 'image-to-image', 'inpainting'],
    ['python', 'sd-server'],
    '1024×1024',
  ],
  ['StableDiffusionXLInpaintPipeline', ['inpainting'], ['python', 'sd-server'], '1024×1024'],
  [
    'StableDiffusion3Pipeline',
    ['text-to-image', 'image-to-image', 'inpainting'],
    ['python', 'sglang-diffusion', 'vllm-omni'],
    '1024×1024',
  ],
  [
    'FluxPipeline',
    ['text-to-image', 'image-to-image', 'inpainting'],
    ['python', 'sglang-diffusion', 'vllm-omni'],
    '1024×1024',
  ],
  ['FluxKontextPipeline', ['image-to-image'], ['python', 'sglang-diffusion', 'vllm-omni'], '1024×1024'],
  ['FluxFillPipeline', ['inpainting'], ['python'], '1024×1024'],
  [
    'QwenImagePipeline',
    ['text-to-image', 'image-to-image', 'inpainting'],
    ['python', 'sglang-diffusion', 'vllm-omni'],
    '1024×1024',
  ],
  ['QwenImageEditPlusPipeline', ['image-to-image'], ['python', 'sglang-diffusion', 'vllm-omni'], '1024×1024'],
  ['ZImagePipeline', ['text-to-image', 'image-to-image'], ['python', 'sglang-diffusion', 'vllm-omni'], '1024×1024'],
  ['WanPipeline', ['text-to-video'], ['python', 'sglang-diffusion', 'vllm-omni'], '832×480, 81 at 16'],
  ['WanImageToVideoPipeline', ['image-to-video'], ['python', 'sglang-diffusion', 'vllm-omni'], '832×480, 81 at 16'],
  ['LTXPipeline', ['text-to-video', 'image-to-video'], ['python'], '704×512, 161 at 25'],
  ['LTXImageToVideoPipeline', ['image-to-video'], ['python'], '704×512, 161 at 25'],
  ['HunyuanVideo15Pipeline', ['text-to-video'], ['python', 'sglang-diffusion', 'vllm-omni'], '1280×720, 121 at 24'],
  ['CogVideoXPipeline', ['text-to-video'], ['python'], '720×480, 49 at 8'],
  ['StableVideoDiffusionPipeline', ['image-to-video'], ['python'], '1024×576, 25 at 7'],
])('the pipeline %s', (name, tasks, engines, defaults) => {
  const found = recognise({ 'model_index.json': { _class_name: name } })
  const { width, height, num_frames: frames, fps } = found.defaults!
  expect(found.tasks).toEqual(tasks.map(task => `slug/${task}`))
  expect(found.engines).toEqual(engines)
  expect(`${width}×${height}${frames ? `, ${frames} at ${fps}` : ''}`).toBe(defaults)
})

test.each([
  ['NewVideoPipeline', 'slug/text-to-video'],
  ['NewImageToVideoPipeline', 'slug/image-to-video'],
  ['NewInpaintPipeline', 'slug/inpainting'],
  ['NewEditPipeline', 'slug/image-to-image'],
  ['NewPipeline', 'slug/text-to-image'],
  ['constructor', 'slug/text-to-image'],
])('the tasks of the unknown pipeline %s are guessed, and said to be', (name, task) => {
  const found = recognise({ 'model_index.json': { _class_name: name } })
  expect([found.tasks, found.engines, found.because]).toEqual([
    [task],
    ['python'],
    `guessed from the name ${name}; --task sets others`,
  ])
})

const speech = ['std/audio-speech']
const text = ['std/chat-completion', 'std/completion']
const both = ['std/audio-transcription', 'std/audio-translation']
test.each<[string, Record<string, unknown>, string[], string, readonly string[], readonly SuggestedEngine[]]>([
  [
    'chat',
    { 'config.json': { architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3' } },
    ['model.safetensors'],
    'a model of transformers (qwen3)',
    text,
    ['vllm', 'sglang', 'python'],
  ],
  [
    'vision',
    {
      'config.json': {
        architectures: ['Qwen2_5_VLForConditionalGeneration'],
        model_type: 'qwen2_5_vl',
        vision_config: {},
      },
    },
    [],
    'that also reads images',
    text,
    ['vllm', 'sglang', 'python'],
  ],
  [
    'embeddings',
    { 'config.json': { architectures: ['BertModel'], model_type: 'bert' } },
    ['modules.json'],
    '(bert)',
    ['std/embeddings', 'std/score'],
    ['tei', 'vllm', 'infinity', 'sglang', 'python'],
  ],
  [
    'cross-encoder',
    { 'config.json': { architectures: ['XLMRobertaForSequenceClassification'] } },
    [],
    'a model of transformers',
    ['std/rerank', 'std/score'],
    ['tei', 'vllm', 'infinity', 'python'],
  ],
  [
    'Whisper',
    { 'config.json': { model_type: 'whisper', vocab_size: 51_866 } },
    ['model.safetensors'],
    'Whisper, safetensors',
    both,
    ['python', 'vllm', 'sglang'],
  ],
  [
    'Whisper for English',
    { 'config.json': { model_type: 'whisper', vocab_size: 51_864 } },
    [],
    'Whisper',
    ['std/audio-transcription'],
    ['python', 'vllm', 'sglang'],
  ],
  [
    'CTranslate2',
    { 'config.json': { suppress_ids: [1], alignment_heads: [] } },
    ['model.bin', 'vocabulary.json'],
    'Whisper for CTranslate2',
    both,
    ['python', 'speaches'],
  ],
  [
    'Kokoro',
    { 'config.json': { istftnet: {} } },
    ['kokoro-v1_0.pth', 'voices/af_heart.pt'],
    'Kokoro',
    speech,
    ['python', 'kokoro-fastapi', 'speaches'],
  ],
  [
    'Kokoro as ONNX',
    {},
    ['kokoro-v1.0.onnx', 'voices-v1.0.bin'],
    'Kokoro, a text-to-speech model (ONNX)',
    speech,
    ['speaches', 'kokoro-fastapi'],
  ],
  [
    'Piper',
    {},
    ['en_US-amy-low.onnx', 'en_US-amy-low.onnx.json'],
    'a voice for Piper',
    speech,
    ['python', 'piper', 'speaches'],
  ],
  [
    'Parler',
    { 'config.json': { model_type: 'parler_tts', architectures: ['ParlerTTSForConditionalGeneration'] } },
    [],
    'Parler-TTS',
    speech,
    ['python'],
  ],
  [
    'Qwen3-TTS',
    { 'config.json': { model_type: 'qwen3_tts' } },
    [],
    'a text-to-speech model (qwen3_tts)',
    speech,
    ['vllm-omni', 'vllm'],
  ],
])('%s', (_, json, files, is, tasks, engines) => {
  const found = recognise(json, files)
  expect(found.is).toContain(is)
  expect([found.tasks, found.engines]).toEqual([tasks, engines])
})

test('Whisper for English is told by its name too, where its configuration does not', () => {
  const found = recognise({ 'config.json': { suppress_ids: [1] } }, ['model.bin', 'vocabulary.txt'], '/m/tiny.en')
  expect(found.tasks).toEqual(['std/audio-transcription'])
})

test.each<[string, Record<string, unknown>, string[], string]>([
  ['an empty folder', {}, ['README.md'], 'has no config.json, so it is not a model'],
  ['an index without a class', { 'model_index.json': {} }, [], 'without "_class_name"'],
  ['an index that is a list', { 'model_index.json': [1] }, [], 'without "_class_name"'],
  [
    'a part of a pipeline',
    { 'config.json': { _class_name: 'FluxTransformer2DModel' } },
    [],
    'is FluxTransformer2DModel, one part of a pipeline',
  ],
  [
    'a LoRA of peft',
    { 'adapter_config.json': { base_model_name_or_path: 'black-forest-labs/FLUX.1-dev' } },
    [],
    'is a LoRA for black-forest-labs/FLUX.1-dev, not a model. Add that model with the engine python',
  ],
  [
    'a LoRA of a text model',
    { 'adapter_config.json': { base_model_name_or_path: 'Qwen/Qwen3-8B' } },
    [],
    '--adapter-of <base>',
  ],
  [
    'music',
    { 'config.json': { model_type: 'musicgen' } },
    [],
    'is a model for music (musicgen), for which infer has no engine',
  ],
  [
    'a translator',
    { 'config.json': { add_source_bos: false } },
    ['model.bin', 'shared_vocabulary.json'],
    'for CTranslate2 that is not Whisper',
  ],
  ['two voices', {}, ['a.onnx', 'a.onnx.json', 'b.onnx', 'b.onnx.json'], 'has no config.json'],
])('%s is refused with what it is', (_, json, files, message) => {
  expect(() => recognise(json, files)).toThrow(message)
})

test.each<[string, SuggestedEngine[], SuggestedEngine[], SuggestedEngine[], string | undefined, boolean]>([
  ['the first that is installed', ['sglang', 'python'], ['vllm', 'sglang', 'python'], [], 'sglang', true],
  [
    'an installed one that runs here first',
    ['vllm', 'python'],
    ['vllm', 'sglang', 'python'],
    ['vllm', 'sglang'],
    'python',
    true,
  ],
  [
    'an installed one that needs a GPU before one that is not installed',
    ['vllm'],
    ['vllm', 'python'],
    ['vllm'],
    'vllm',
    true,
  ],
  ['none installed: the best that runs here', [], ['vllm', 'python'], ['vllm'], 'python', false],
  ['none installed and none runs here: the best', [], ['vllm'], ['vllm'], 'vllm', false],
  ['none known', ['vllm'], [], [], undefined, false],
])('the engine: %s', (_, installed, known, needGpu, engine, isInstalled) => {
  const choice = chooseEngine(['vllm', 'sglang', 'python'] as const, {
    isKnown: name => known.includes(name),
    isInstalled: name => installed.includes(name),
    runsHere: name => !needGpu.includes(name),
  })
  expect(choice).toEqual(engine === undefined ? undefined : { engine, isInstalled })
})

test('files beside a diffusion model are found by their usual names', () => {
  const files = [
    '/m/ae.safetensors',
    '/m/clip_l.safetensors',
    '/m/t5xxl_fp16.safetensors',
    '/m/umt5-xxl-encoder-Q8_0.gguf',
    '/m/notes.txt',
  ]
  expect(findCompanions(familyOf('flux').companions!, files)).toEqual({
    args: ['--vae', '/m/ae.safetensors', '--clip_l', '/m/clip_l.safetensors', '--t5xxl', '/m/t5xxl_fp16.safetensors'],
    missing: [],
  })
  const wan = findCompanions(familyOf('wan').companions!, files)
  expect(wan.args).toEqual(['--t5xxl', '/m/umt5-xxl-encoder-Q8_0.gguf'])
  expect(wan.missing.map(({ option }) => option)).toEqual(['--vae'])
})
