import { chmodSync, existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { tensor, writeGguf } from '../../../bin/gguf-writer.ts'
import { tinyChat } from '../../../bin/tiny-chat.ts'
import { presets } from '../../../gpu/presets/presets.ts'
import { whisperServer } from '../../../gpu/presets/whisper-server.ts'
import { known, safetensors } from '../../core/models/recognition/_files.ts'
import { openHub } from '../../fixtures/hub.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'
import { layeredGguf } from '../../gpu/_layered-gguf.ts'
import { llama8b } from '../../gpu/_llama-8b.ts'
import { runInProcess } from '../_in-process.ts'
import { temporaryFolder } from '../_infer.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

function setUp() {
  const dataDir = temporaryFolder()
  const bin = join(dataDir, 'bin')
  mkdirSync(bin)
  const file = (name: string, bytes: Uint8Array | string, mode = 0o644) => {
    const path = join(dataDir, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
    chmodSync(path, mode)
    return path
  }
  return {
    dataDir,
    file,
    install: (program: string) => file(`bin/${program}`, '#!/bin/sh\n', 0o755),
    setUpPython: (environment: string) => file(`engines/${environment}/bin/infer-worker`, '#!/bin/sh\n', 0o755),
    add: (what: string, args: string[] = ['--yes', '--json'], env: Record<string, string> = {}) =>
      runInProcess(['model', 'add', what, '--data-dir', dataDir, ...args], {
        HF_HOME: join(dataDir, 'hf'),
        // Downloads need flock of the system.
        PATH: `${bin}:/usr/bin:/bin`,
        ...env,
      }),
    written: () => readFileSync(join(dataDir, 'infer.yaml'), 'utf8'),
  }
}

type Added = Awaited<ReturnType<ReturnType<typeof setUp>['add']>>
const json = ({ stdout }: Added) => JSON.parse(stdout.toString()) as { model: object; advice: string[] }

async function hubWith(files: Record<string, string | Buffer>) {
  const hub = await openHub({
    'o/some-model': {
      files: Object.fromEntries(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])),
    },
  })
  onTestFinished(() => hub.close())
  return { hub, env: { HF_ENDPOINT: hub.endpoint } }
}

const weights = (bytes: number) => Buffer.alloc(bytes)
const pipeline = {
  'model_index.json': JSON.stringify({
    _class_name: 'WanPipeline',
    _diffusers_version: '0.40.0',
    transformer: ['diffusers', 'WanTransformer3DModel'],
    vae: ['diffusers', 'AutoencoderKLWan'],
    tokenizer: ['transformers', 'T5TokenizerFast'],
    feature_extractor: [null, null],
  }),
  'README.md': 'a model',
  'wan.safetensors': weights(5000),
  'transformer/config.json': '{"layers": 1}',
  'transformer/diffusion_pytorch_model.safetensors': weights(4000),
  'transformer/diffusion_pytorch_model.fp16.safetensors': weights(2000),
  'transformer/diffusion_pytorch_model.bin': weights(4001),
  'vae/config.json': '{"layers": 2}',
  'vae/diffusion_pytorch_model.safetensors': weights(1000),
  'vae/diffusion_flax_model.msgpack': weights(1001),
  'tokenizer/tokenizer.json': '{"words": 1}',
  'tokenizer/spiece.model': 'x',
  'old_vae/diffusion_pytorch_model.safetensors': weights(1002),
}

test('a pipeline of diffusers is proposed from the hub, and one variant of its weights is downloaded', async () => {
  const { dataDir, add, written } = setUp()
  const { hub, env } = await hubWith(pipeline)
  const { exitCode, stdout, stderr } = await add('hf:o/some-model', ['--yes'], env)
  const source = `${dataDir}/hf/hub/models--o--some-model/snapshots/${hub.commitOf('o/some-model')}`
  expect([exitCode, stdout.toString()]).toEqual([
    0,
    expect.stringMatching(
      /^some-model\n {2}source {4}\/.*\n {2}is {8}Wan, a diffusers pipeline \(WanPipeline\), 3\.\d KiB\n {2}engine {4}python \(not installed\)\n {2}tasks {5}slug\/text-to-video: WanPipeline makes videos\n {2}defaults {2}832×480, 81 frames at 16 per second, 50 steps, guidance 5\n {2}memory {4}.*, estimated from the size of its files\nAdded 'some-model' to \/.*\nStart the server with: infer serve\. Then: infer model test some-model\n$/,
    ),
  ])
  expect(stderr).toContain(
    "Warning: The engine 'python' is not installed on this machine. Install it with: infer engine setup python",
  )
  expect(written()).toContain(`engine: python\n    source: ${source}\n    tasks: [slug/text-to-video]\n`)
  expect(parse(written())).toMatchObject({
    models: [
      {
        generation_defaults: {
          num_inference_steps: 50,
          guidance_scale: 5,
          width: 832,
          height: 480,
          num_frames: 81,
          fps: 16,
        },
      },
    ],
  })
  const fetched = hub.requests.filter(({ range, path }) => range === undefined && path.includes('resolve'))
  expect(fetched.map(({ path }) => path.split(`${hub.commitOf('o/some-model')}/`)[1])).toEqual([
    'model_index.json',
    'transformer/config.json',
    'transformer/diffusion_pytorch_model.fp16.safetensors',
    'vae/config.json',
    'vae/diffusion_pytorch_model.safetensors',
    'tokenizer/tokenizer.json',
    'tokenizer/spiece.model',
  ])
})

test('an installed engine is chosen, and nothing is left to say', async () => {
  const { add, setUpPython } = setUp()
  const { env } = await hubWith(pipeline)
  setUpPython('python')
  expect(json(await add('hf:o/some-model', ['--yes', '--json'], env))).toMatchObject({
    model: { engine: 'python' },
    advice: [],
  })
})

test('what fits on GPUs after a set-up is said; vLLM: the context that fits, and on how many GPUs', async () => {
  const { add, file, install, dataDir } = setUp()
  const cards = [0, 1].map(index =>
    cardLine({ index, uuid: `GPU-${index}`, 'memory.total': '24576', name: 'NVIDIA L4' }),
  )
  installNvidiaSmi(join(dataDir, 'bin'), { cards: `printf '%s\\n' '${cards[0]}' '${cards[1]}'` })
  // The built-in engine has no backend for these cards: the entry is for them, and how to get there is said.
  const tiny = file('tiny.gguf', tinyChat())
  const advice = 'It runs on the processor until the GPUs are set up: infer engine setup gpu'
  expect(json(await add(tiny, ['--dry-run', '--json'])).advice).toEqual([advice])
  // The context is not written down where a second card makes it longer: the server decides at each load.
  const text = (await add(layeredGguf(dataDir, 17, 131_072), ['--dry-run'])).stdout.toString()
  expect(text).toContain(
    '16384 tokens for each of 1 request at a time; 32768 where 2 GPUs are free (trained for 131072)\n',
  )
  expect(text).not.toContain('context_length')
  // Where one is written down, the advice names it, too.
  const two = json(await add(layeredGguf(dataDir, 40, 131_072), ['--dry-run', '--json']))
  expect(two.model).toMatchObject({ context_length: 8192 })
  expect(two.advice).toEqual([
    advice,
    'With an 8-bit cache (`kv_type: q8_0` and `context_length: 16384`) the context would be 16384 tokens instead of 8192.',
  ])
  const env = { PATH: join(dataDir, 'bin') }
  const listed = await runInProcess(['model', 'catalog', 'qwen3-8b', '--json', '--data-dir', dataDir], env)
  expect(JSON.parse(listed.stdout.toString())).toMatchObject({
    machine: { gpus: 2, gpu_setup: 'infer engine setup gpu' },
    models: [{ chosen: { quantization: 'Q8_0', fit: { grade: 'setup', devices: 1, layers: { gpu: 37, total: 37 } } } }],
  })
  install('vllm')
  const folder = (name: string, layers: number, bytes: number) => {
    const config = { ...llama8b, architectures: ['LlamaForCausalLM'], num_hidden_layers: layers }
    file(`${name}/config.json`, JSON.stringify(config))
    truncateSync(file(`${name}/model.safetensors`, ''), bytes)
    return join(dataDir, name)
  }
  const fitting = await add(folder('eight', 32, 16.06e9), ['--dry-run', '--json'])
  expect(json(fitting).advice).toEqual([expect.stringMatching(/^A context of 131072 .* at most 43008 tokens\.$/)])
  const large = await add(folder('large', 48, 30e9), ['--dry-run'])
  expect(String(large.stdout) + large.stderr).toMatch(/memory.* on 2 GPUs, weights/)
  const wide = await add(folder('wide', 48, 60e9), ['--dry-run'])
  expect(String(wide.stdout) + wide.stderr).toMatch(/It does not fit\. /)
})

test('of a pipeline that has parts without safetensors files nothing is downloaded', async () => {
  const { dataDir, add } = setUp()
  const { 'vae/diffusion_pytorch_model.safetensors': _, ...rest } = pipeline
  const { env } = await hubWith({ ...rest, 'vae/diffusion_pytorch_model.bin': weights(1000) })
  const { failure } = await add('hf:o/some-model', ['--yes'], env)
  expect(failure?.message).toMatch(/has no safetensors files for its vae\. Other files of weights can run code/)
  expect(existsSync(join(dataDir, 'hf'))).toBe(false)
})

const lora = safetensors({ 'lora_unet_x.lora_down.weight': [16, 1] }, { ss_base_model_version: 'sdxl_base_v1-0' })

test('a LoRA is refused before it is downloaded', async () => {
  const { dataDir, add } = setUp()
  const { env } = await hubWith({ 'style.safetensors': Buffer.concat([lora, weights(9000)]) })
  const { failure } = await add('hf:o/some-model', ['--yes'], env)
  expect(failure?.message).toBe(
    "'style.safetensors' is a LoRA for Stable Diffusion XL, not a model. Add a model of that family that runs with the engine python, and attach the LoRA to its entry in infer.yaml: loras: [style.safetensors=1]",
  )
  expect(existsSync(join(dataDir, 'hf'))).toBe(false)
})

test('a repository with several files without a configuration asks for one of them', async () => {
  const { add } = setUp()
  const { env } = await hubWith({ 'a.safetensors': weights(9), 'b/c.safetensors': weights(9) })
  const { failure } = await add('hf:o/some-model', ['--yes'], env)
  expect(failure?.message).toBe(
    'The repository o/some-model has several safetensors files and no configuration. Name one, such as hf:o/some-model:a.safetensors. It has: a.safetensors, b/c.safetensors.',
  )
})

test('a checkpoint in one file runs with sd-server', async () => {
  const { file, install, add } = setUp()
  install('sd-server')
  const source = file('Dream-XL.safetensors', safetensors(known.sdxl))
  const added = json(await add(source))
  expect(added).toMatchObject({
    model: {
      id: 'dream-xl',
      engine: 'sd-server',
      source,
      tasks: ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting'],
    },
    advice: [],
  })
  expect(added.model).not.toHaveProperty('args')
})

test.each([
  ['flux', { 'general.architecture': ['string', 'flux'] as const }],
  ['no architecture', {}],
])('a diffusion model as GGUF with %s gets the files beside it, and the missing ones are named', async (_, fields) => {
  const { file, install, add } = setUp()
  install('sd-server')
  const bytes = writeGguf({ ...fields }, [
    tensor('double_blocks.0.img_attn.qkv.weight', [32, 32], 0),
    tensor('single_blocks.0.linear1.weight', [32, 32], 0),
  ])
  const source = file('flux/flux1-dev-Q4_0.gguf', bytes)
  const vae = file('flux/ae.safetensors', 'x')
  expect(json(await add(source))).toMatchObject({
    model: { id: 'flux1-dev', engine: 'sd-server', source, args: ['--diffusion-model', source, '--vae', vae] },
    advice: [
      "It also needs the text encoder CLIP-L, which is not beside it. Add its path to 'args' of the model in infer.yaml: --clip_l /path/to/file",
      "It also needs the text encoder T5-XXL, which is not beside it. Add its path to 'args' of the model in infer.yaml: --t5xxl /path/to/file",
    ],
  })
})

test('a voice for Piper is fetched with its configuration and runs in the environment for speech', async () => {
  const { dataDir, add, setUpPython } = setUp()
  const { hub, env } = await hubWith({
    'en/amy.onnx': weights(500),
    'en/amy.onnx.json': '{}',
    'en/joe.onnx': weights(9),
  })
  const missing = json(await add('hf:o/some-model:en/amy.onnx', ['--yes', '--json'], env))
  expect(missing.advice).toEqual([
    "The engine 'python' is not installed on this machine. Install it with: infer engine setup speech",
  ])
  setUpPython('speech')
  const source = `${dataDir}/hf/hub/models--o--some-model/snapshots/${hub.commitOf('o/some-model')}/en/amy.onnx`
  expect(json(await add('hf:o/some-model:en/amy.onnx', ['--yes', '--json', '--id', 'again'], env))).toMatchObject({
    model: { engine: 'python', source, tasks: ['std/audio-speech'] },
    advice: [],
  })
  expect(existsSync(`${source}.json`)).toBe(true)
})

test('a model that reads images gets its image encoder where llama-server is installed', async () => {
  const { file, install, add } = setUp()
  const source = file('vision/Good-Model-Q4_K_M.gguf', tinyChat())
  const projector = file('vision/mmproj-F16.gguf', tinyChat())
  expect(json(await add(source, ['--yes', '--json', '--id', 'text']))).toMatchObject({
    model: { id: 'text', source },
    advice: [expect.stringMatching(/^'.*mmproj-F16\.gguf' lets this model read images, with the engine llama-server/)],
  })
  install('llama-server')
  expect(json(await add(source, ['--yes', '--json', '--id', 'images']))).toMatchObject({
    model: { engine: 'llama-server', source, args: ['--mmproj', projector] },
    advice: [],
  })
})

test('the image encoder of a repository is downloaded with the model where llama-server is installed', async () => {
  const { install, add } = setUp()
  install('llama-server')
  const { env } = await hubWith({ 'm-Q4_K_M.gguf': tinyChat(), 'mmproj-m-f16.gguf': weights(300) })
  const { model } = json(await add('hf:o/some-model', ['--yes', '--json'], env)) as { model: { args: string[] } }
  expect(model).toMatchObject({
    engine: 'llama-server',
    args: ['--mmproj', expect.stringMatching(/mmproj-m-f16\.gguf$/)],
  })
  expect(existsSync(model.args[1]!)).toBe(true)
})

test.each<[string, string, Buffer, string]>([
  ['a text', 'x.safetensors', Buffer.from('hello, this is not a model at all'), 'is not a safetensors file'],
  ['a truncated file', 'x.safetensors', safetensors(known.sdxl).subarray(0, 100), 'ends in the middle of its header'],
  ['an empty file', 'x.safetensors', Buffer.alloc(0), 'it is too short'],
  [
    'a checkpoint of PyTorch',
    'x.ckpt',
    Buffer.from([0x50, 0x4b, 3, 4, 0, 0, 0, 0, 0]),
    'is a PyTorch file, which can run code',
  ],
  ['a pickle', 'x.pt', Buffer.from([0x80, 2, 0x8a]), 'is a PyTorch file, which can run code'],
  ['an ONNX file alone', 'x.onnx', weights(9), "is an ONNX file without 'x.onnx.json' beside it"],
  ['an unknown file', 'x.data', Buffer.from('data'), 'is not a model that infer knows. Give the engine'],
  [
    'a VAE',
    'ae.safetensors',
    safetensors({ 'decoder.conv_in.weight': [512, 16, 3, 3] }),
    'is a VAE, not a whole model',
  ],
])('%s as %s is refused', async (_, name, bytes, message) => {
  const { file, add } = setUp()
  const { failure } = await add(file(name, bytes), ['--yes'])
  expect([failure?.code, failure?.message]).toEqual(['invalid_value', expect.stringContaining(message)])
})

test.each([
  ['GGUF', 'x.safetensors', tinyChat(), { source: expect.any(String), context_length: 4096 }],
  ['safetensors', 'x.gguf', safetensors(known.sd15), { engine: 'sd-server' }],
])('a %s file with the wrong ending is recognised by its content', async (_, name, bytes, model) => {
  const { file, add } = setUp()
  expect(json(await add(file(name, bytes)))).toMatchObject({ model })
})

test('a file of a folder that is not JSON is named', async () => {
  const { dataDir, file, add } = setUp()
  file('broken/model_index.json', '{"_class_name": ')
  const { failure } = await add(join(dataDir, 'broken'), ['--yes'])
  expect(failure?.message).toMatch(/'.*broken\/model_index\.json' cannot be read: /)
})

test('a model for which infer has no engine is refused with the engines that would run it', async () => {
  const { dataDir, file, add } = setUp()
  file('tts/config.json', '{"model_type": "parler_tts"}')
  file('tts/model.safetensors', weights(8))
  const own = presets.get('python')!
  ;(presets as Map<string, typeof own>).set('python', { ...whisperServer, name: 'python' })
  onTestFinished(() => void (presets as Map<string, typeof own>).set('python', own))
  const { failure } = await add(join(dataDir, 'tts'), ['--yes'])
  expect(failure?.message).toBe(
    'This is Parler-TTS. It runs with python, and this version of infer starts none of them. See: infer help engines',
  )
})

test('a model that does not fit by the size of its files is refused, unless --memory or --force is given', async () => {
  const { dataDir, file, setUpPython, add, written } = setUp()
  setUpPython('speech')
  file('large/config.json', '{"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper"}')
  truncateSync(file('large/model.safetensors', ''), 4 * 2 ** 40)
  const folder = join(dataDir, 'large')
  const { failure } = await add(folder, ['--yes', '--engine', 'python'])
  expect(failure?.message).toMatch(
    /^It does not fit: it needs at least .* TiB, and .* are available here\. If it needs less, say so with --memory\. Add/,
  )
  expect(existsSync(join(dataDir, 'infer.yaml'))).toBe(false)
  expect((await add(folder, ['--yes', '--engine', 'python', '--memory', '1GiB'])).failure).toBeUndefined()
  expect(written()).toContain('memory: 1GiB')
})

test.runIf(hasTerminal)(
  'in a terminal a model of transformers is shown with its size before it is downloaded',
  async () => {
    const { dataDir, install } = setUp()
    install('vllm')
    const { env } = await hubWith({
      'config.json': '{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "max_position_embeddings": 4096}',
      'model.safetensors': weights(20_000),
      'pytorch_model.bin': weights(20_001),
    })
    const terminal = inTerminal(['model', 'add', 'hf:o/some-model', '--force', '--data-dir', dataDir], {
      ...env,
      HF_HOME: join(dataDir, 'hf'),
      PATH: `${join(dataDir, 'bin')}:${process.env.PATH}`,
    })
    await terminal.sees('a model of transformers (qwen3), 19.6 KiB')
    await terminal.sees('vllm')
    await terminal.sees("the engine's choice (trained for 4096)")
    await terminal.sees('Download 19.6 KiB and add it to')
    terminal.types('n\n')
    await terminal.sees('Nothing was changed.')
    expect(await terminal.ends()).toBe(0)
    expect(existsSync(join(dataDir, 'hf'))).toBe(false)
  },
)

const transformers = {
  'config.json': '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 4096}',
  'model.safetensors': weights(20_000),
}

test('a name of a hub needs no prefix, and the engine that is missing is named in one line', async () => {
  const { add, written } = setUp()
  const { env } = await hubWith(transformers)
  const { exitCode, stdout, stderr } = await add('o/some-model', ['--engine', 'vllm', '--yes', '--force'], env)
  expect([exitCode, stdout.toString()]).toEqual([0, expect.stringMatching(/\n {2}engine +vllm \(not installed\)\n/)])
  const said = "The engine 'vllm' is not installed on this machine. Install it with: infer engine setup vllm"
  expect(stderr.split('\n').filter(line => line.includes(said))).toHaveLength(1)
  expect(written()).toContain('engine: vllm')
})

test.runIf(hasTerminal)('in a terminal the set-up of the engine is offered', async () => {
  const { dataDir } = setUp()
  const { env } = await hubWith(transformers)
  const terminal = inTerminal(['model', 'add', 'o/some-model', '--data-dir', dataDir], {
    ...env,
    HF_HOME: join(dataDir, 'hf'),
  })
  await terminal.sees('Download 19.6 KiB and add it to')
  terminal.types('y\n')
  await terminal.sees("Added 'some-model' to")
  await terminal.sees("Install the environment 'python' now? It takes about 8.4 GiB on the disk.")
  terminal.types('n\n')
  await terminal.sees('Later: infer engine setup python')
  expect(await terminal.ends()).toBe(0)
  expect(existsSync(join(dataDir, 'engines'))).toBe(false)
})
