import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tensor, writeGguf } from '../../../bin/gguf-writer.ts'
import { tinyEmbed } from '../../../bin/tiny-bert.ts'
import { tinyChat, tinyChatRandom } from '../../../bin/tiny-chat.ts'
import { asReference, locateModel } from '../../../cli/models/locate.ts'
import { type GivenSettings, propose } from '../../../cli/models/proposal.ts'
import { hubSettings } from '../../../core/models/hub/settings.ts'
import { tinyLora } from '../../_lora.ts'
import { openHub } from '../../fixtures/hub.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

function setUp(config?: string) {
  const dataDir = temporaryFolder()
  const path = join(dataDir, 'infer.yaml')
  if (config !== undefined) writeFileSync(path, config)
  const file = (name: string, bytes: Uint8Array) => {
    writeFileSync(join(dataDir, name), bytes)
    return join(dataDir, name)
  }
  const add = (what: string, args: string[] = ['--yes'], env: Record<string, string> = {}) =>
    infer(['model', 'add', what, '--data-dir', dataDir, ...args], { env })
  return { dataDir, path, file, add, written: () => readFileSync(path, 'utf8') }
}

const look = (what: string) =>
  locateModel(what, {
    dataDir: '/nonexistent',
    hub: hubSettings({}),
    signal: new AbortController().signal,
    onEvent: () => undefined,
  })

test('a dry run prints the lines and writes nothing', async () => {
  const { file, add, path } = setUp()
  const model = file('Good-Model-Q4_K_M.gguf', tinyChat())
  const { exitCode, stdout } = await add(model, ['--dry-run'])
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/would be added to .*infer\.yaml:\n\n.*- id: good-model/s),
  ])
  const { lines } = json(await add(model, ['--dry-run', '--json'])) as { lines: { added: string[]; removed: string[] } }
  expect([lines.added.length > 2, lines.removed]).toEqual([true, []])
  expect(existsSync(path)).toBe(false)
})

test('a file is inspected, proposed and added, and comments are kept', async () => {
  const { file, add, written, path } = setUp('# mine\nmodels:\n  - id: first # the first\n    source: /m.gguf\n')
  const model = file('Good-Model-Q4_K_M.gguf', tinyChat())
  const { exitCode, stdout, stderr } = await add(model)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^good-model\n {2}source +\S+\n {2}is +llama, 77120 parameters, F32, 301 KiB\n/)
  expect(stdout).toMatch(/\n {2}tasks +std\/chat-completion, std\/completion: it has a chat template\n/)
  expect(stdout).toMatch(/\n {2}context +4096 tokens for each of 4 requests at a time\n/)
  expect(stdout).toMatch(/\n {2}memory +\d+ MiB: 301 KiB weights, 4\.0 MiB cache/)
  expect(stdout).toContain(`Added 'good-model' to ${path}.`)
  expect(stdout).toContain('Start the server with: infer serve. Then: infer run good-model "Hello"')
  expect(written()).toBe(
    `# mine\nmodels:\n  - id: first # the first\n    source: /m.gguf\n  - id: good-model\n    source: ${model}\n    tasks: [std/chat-completion, std/completion]\n    context_length: 4096\n`,
  )
})

test('values given as options are used', async () => {
  const { file, add } = setUp()
  const model = file('m.gguf', tinyEmbed())
  const said = ['--id', 'mine', '--task', 'embeddings', '--context', '256', '--concurrency', '2', '--memory', '1GiB']
  expect(json(await add(model, ['--yes', '--json', ...said]))).toMatchObject({
    model: {
      id: 'mine',
      source: model,
      tasks: ['std/embeddings'],
      context_length: 256,
      concurrency: 2,
      memory: '1GiB',
    },
    memory: 2 ** 30,
    obstacle: null,
    offered: null,
  })
})

test('an id in use and a file that is already configured are refused; the configuration is unchanged', async () => {
  const { dataDir, file, add, written } = setUp()
  const model = file('m1.gguf', tinyChat())
  const config = `models:\n  - id: m1\n    source: ${model}\n`
  writeFileSync(join(dataDir, 'infer.yaml'), config)
  const taken = await add(model, ['--yes', '--id', 'm1'])
  expect([taken.exitCode, taken.stderr]).toEqual([1, expect.stringContaining("has a model 'm1' already")])
  const again = await add(model)
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining("offers this model already, as 'm1'")])
  expect(written()).toBe(config)
})

test.runIf(process.getuid?.() === 0)(
  'as root, a notice says that the user of the server must be able to read the file',
  async () => {
    const { dataDir, file, add } = setUp()
    const model = file('m1.gguf', tinyChat())
    chownSync(dataDir, 12_345, 12_345)
    const { exitCode, stderr } = await add(model)
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringContaining(`runs as another user, who must be able to read ${model}`),
    ])
  },
)

test.each(['bad id !', ''])('the id %j is refused in a sentence', async id => {
  const { file, add } = setUp()
  const { exitCode, stderr } = await add(file('m.gguf', tinyChat()), ['--yes', '--id', id])
  expect(stderr).toBe(
    `Error: '${id}' is not a valid value of --id. Write letters, digits and . _ : - (at most 128), with / between parts.\n`,
  )
  expect(exitCode).toBe(65)
})

test('a missing file is reported before any question', async () => {
  const ended = await setUp().add('/nowhere/model.gguf', [])
  expect([ended.exitCode, ended.stderr]).toEqual([
    65,
    expect.stringContaining("There is no file '/nowhere/model.gguf'"),
  ])
})

test('without a terminal and without --yes nothing is changed', async () => {
  const { file, add, path } = setUp()
  const ended = await add(file('m1.gguf', tinyChat()), [])
  expect([ended.exitCode, ended.stderr]).toEqual([64, expect.stringContaining('Add --yes')])
  expect(existsSync(path)).toBe(false)
})

test('the proposed id is another one when it is in use', async () => {
  const { dataDir, file } = setUp()
  const model = await look(file('m1.gguf', tinyChat()))
  expect((await propose(model, {}, { taken: new Set(['m1']), dataDir })).entry.id).toBe('m1-f32')
})

test('a file that is not a model, or that no engine can run, is refused with what it is', async () => {
  const { dataDir, file } = setUp()
  const adapter = writeGguf({ 'general.architecture': ['string', 'llama'], 'general.type': ['string', 'adapter'] }, [
    tensor('a', [4], 0),
  ])
  const refused = async (path: string, said: GivenSettings = {}) =>
    propose(await look(path), said, { taken: new Set(), dataDir })
  await expect(refused(file('a.gguf', adapter))).rejects.toThrow("is not a model, but an 'adapter'")
  await expect(refused(file('half.gguf', tinyChat().subarray(0, -5000)))).rejects.toThrow('is incomplete')
  await expect(refused(file('text.gguf', Buffer.from('hello'.repeat(9))))).rejects.toThrow('is not a GGUF file')
  await expect(refused(file('m.gguf', tinyChat()), { engine: 'nope' })).rejects.toThrow("there is no engine 'nope'")
  await expect(refused(dataDir)).rejects.toThrow('has no config.json')
  await expect(refused('owner/name')).rejects.toThrow(/There is no file '.*\/owner\/name'/)
})

/** The beginning of a Whisper model in the format of whisper.cpp, with this vocabulary. */
function whisperFile(vocabulary: number): Buffer {
  const bytes = Buffer.alloc(64)
  bytes.writeUInt32LE(0x67676d6c)
  bytes.writeInt32LE(vocabulary, 4)
  return bytes
}

test.each([
  ['ggml-base.bin', 51_865, 'whisper-base', ['std/audio-transcription', 'std/audio-translation']],
  ['ggml-base.en.bin', 51_864, 'whisper-base.en', ['std/audio-transcription']],
  ['mine.bin', 51_866, 'mine', ['std/audio-transcription', 'std/audio-translation']],
])('the Whisper model %s is proposed for whisper-server', async (name, vocabulary, id, tasks) => {
  const { file, add } = setUp()
  const source = file(name, whisperFile(vocabulary))
  expect(json(await add(source, ['--yes', '--json']))).toMatchObject({
    model: { id, engine: 'whisper-server', source, tasks },
  })
  const { exitCode, stdout } = await add(source, ['--yes', '--id', 'again'])
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('Then: infer model test again')])
})

test('a Whisper model of a hub is added too', async () => {
  const { dataDir, add } = setUp()
  const hub = await openHub({ 'o/whisper.cpp': { files: { 'ggml-tiny.bin': whisperFile(51_865) } } })
  onTestFinished(() => hub.close())
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(dataDir, 'hf') }
  expect(json(await add('hf:o/whisper.cpp:ggml-tiny.bin', ['--yes', '--json'], env))).toMatchObject({
    model: { id: 'whisper-tiny', engine: 'whisper-server' },
  })
})

test('a model that does not fit is refused with what it needs and what there is, unless --force is given', async () => {
  const { dataDir, file, add, written } = setUp()
  const huge = writeGguf(
    {
      'general.architecture': ['string', 'llama'],
      'llama.block_count': ['u32', 100],
      'llama.context_length': ['u32', 2 ** 24],
      'llama.embedding_length': ['u32', 8192],
      'llama.attention.head_count': ['u32', 64],
      'tokenizer.chat_template': ['string', '{{ messages }}'],
    },
    [tensor('a', [4], 0)],
  )
  const path = file('huge-one.gguf', huge)
  const given = ['--yes', '--context', String(2 ** 24)]
  expect(await add(path, given)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(
      /^Error: It does not fit: it needs at least .* TiB, and .* are available here\..* Add it anyway with --force\.$/m,
    ) as string,
  })
  expect(existsSync(join(dataDir, 'infer.yaml'))).toBe(false)
  const { exitCode, stderr } = await add(path, [...given, '--force'])
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringMatching(/Warning: It does not fit: it needs at least .* TiB, and .* are available here/),
  ])
  expect(written()).toContain('context_length: 16777216')
})

test('a reference and a URL are downloaded first', async () => {
  const { dataDir, add, written } = setUp()
  const hub = await openHub({ 'Owner/Tiny-GGUF': { files: { 'x-Q4_K_M.gguf': tinyChat() } } })
  onTestFinished(() => hub.close())
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(dataDir, 'hf') }
  const fromHub = await add('hf:Owner/Tiny-GGUF', ['--yes'], env)
  expect([fromHub.exitCode, fromHub.stdout]).toEqual([0, expect.stringContaining("Added 'tiny'")])
  expect(written()).toContain(`source: ${dataDir}/hf/hub/models--Owner--Tiny-GGUF/snapshots/`)
  // With another hub configured, this is a foreign URL for the command.
  const address = `${hub.endpoint}/Owner/Tiny-GGUF/resolve/main/x-Q4_K_M.gguf`
  const fromAddress = await add(address, ['--yes'], { ...env, HF_ENDPOINT: 'http://127.0.0.1:1' })
  expect([fromAddress.exitCode, fromAddress.stderr]).toEqual([0, expect.stringContaining('Downloading x-Q4_K_M.gguf')])
  expect(written()).toContain(`source: ${dataDir}/models/x-Q4_K_M.gguf`)
})

test('a safetensors folder is added with vLLM where that is installed', async () => {
  const { dataDir, file, add } = setUp()
  chmodSync(file('vllm', Buffer.from('#!/bin/sh\n')), 0o755)
  mkdirSync(join(dataDir, 'Some-Model'))
  writeFileSync(join(dataDir, 'Some-Model/config.json'), '{"architectures":["Qwen3ForCausalLM"]}')
  writeFileSync(join(dataDir, 'Some-Model/model.safetensors'), Buffer.alloc(1000))
  const env = { PATH: `${dataDir}:${process.env.PATH}` }
  expect(json(await add(join(dataDir, 'Some-Model'), ['--yes', '--force', '--json'], env))).toMatchObject({
    advice: [],
    model: {
      id: 'some-model',
      engine: 'vllm',
      source: join(dataDir, 'Some-Model'),
      tasks: ['std/chat-completion', 'std/completion'],
    },
  })
})

test('the command waits until the running server offers the model', async () => {
  const { dataDir, file, add } = setUp()
  let asked = 0
  const { url } = await fakeServer((_, response) =>
    answer(response, 200, { models: asked++ < 2 ? [] : [{ model_id: 'm1' }] }),
  )
  writeFileSync(join(dataDir, 'server.json'), JSON.stringify({ url, pid: process.pid }))
  writeFileSync(join(dataDir, 'root-token'), 'sk-x')
  const { stdout } = await add(file('m1.gguf', tinyChat()))
  expect(stdout).toContain('Ready to use: infer run m1 "Hello"')
  expect(asked).toBe(3)
})

test('a server that does not answer is reported and does not undo the added entry', async () => {
  const { dataDir, file, add, written } = setUp()
  writeFileSync(join(dataDir, 'server.json'), JSON.stringify({ url: 'http://127.0.0.1:9', pid: process.pid }))
  const { exitCode, stdout, stderr } = await add(file('m.gguf', tinyChat()), ['--yes', '--id', 'mine'])
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`Added 'mine'`)])
  expect(stderr).toMatch(/Could not check whether the server offers the model: The root token .* cannot be read/)
  expect(written()).toContain('- id: mine')
})

test.runIf(hasTerminal)('a person is asked, and may refuse', async () => {
  const { dataDir, file, path } = setUp()
  const model = file('m1.gguf', tinyChat())
  const no = inTerminal(['model', 'add', model, '--data-dir', dataDir])
  await no.sees('[Y/n]')
  no.types('n\n')
  await no.sees('Nothing was changed.')
  expect(await no.ends()).toBe(0)
  expect(existsSync(path)).toBe(false)
  const yes = inTerminal(['model', 'add', model, '--data-dir', dataDir])
  await yes.sees('[Y/n]')
  yes.types('\n')
  await yes.sees("Added 'm1'")
  expect(await yes.ends()).toBe(0)
  expect(existsSync(path)).toBe(true)
})

test.runIf(hasTerminal)('a remote model is inspected and confirmed before it is downloaded', async () => {
  const { dataDir, path } = setUp()
  const hub = await openHub({ 'o/large-model': { files: { 'x-Q4_K_M.gguf': tinyChat() } } })
  onTestFinished(() => hub.close())
  const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: join(dataDir, 'hf') }
  const terminal = inTerminal(['model', 'add', 'hf:o/large-model', '--data-dir', dataDir], env)
  await terminal.sees('it has a chat template')
  await terminal.sees(`Download 311 KiB and add it to ${path}?`)
  expect(existsSync(env.HF_HOME)).toBe(false)
  terminal.types('n\n')
  await terminal.sees('Nothing was changed.')
  expect(await terminal.ends()).toBe(0)
  expect([existsSync(env.HF_HOME), existsSync(path)]).toEqual([false, false])
})

test.runIf(hasTerminal)(
  'where no ComfyUI is installed, a graph is added and the set-up is offered in a terminal',
  async () => {
    const { dataDir, file, written } = setUp()
    const graph = {
      6: { class_type: 'CLIPTextEncode', inputs: { text: 'a cat' } },
      3: { class_type: 'KSampler', inputs: { seed: 1, steps: 20, positive: ['6', 0] } },
      9: { class_type: 'SaveImage', inputs: { filename_prefix: 'x', images: ['3', 0] } },
    }
    const path = file('cats.json', Buffer.from(JSON.stringify(graph)))
    const terminal = inTerminal(['model', 'add', `comfyui:${path}`, '--data-dir', dataDir])
    await terminal.sees("The engine 'comfyui' is not installed on this machine.")
    await terminal.sees('Add it to')
    terminal.types('y\n')
    await terminal.sees('Install ComfyUI 0.33.0 (GPL-3.0) now? It takes about 8.4 GiB on the disk.')
    terminal.types('n\n')
    await terminal.sees('Later: infer engine setup comfyui')
    expect(await terminal.ends()).toBe(0)
    expect(written()).toContain('engine: comfyui')
  },
)

test('a ComfyUI graph is proposed with its mapping, and one in the format of the editor is refused', async () => {
  const { dataDir, file, add, written } = setUp('models:\n  - id: first\n    source: /m.gguf\n')
  const workflow = {
    3: { class_type: 'KSampler', inputs: { seed: 1, steps: 20, cfg: 7, positive: ['6', 0], negative: ['7', 0] } },
    6: { class_type: 'CLIPTextEncode', inputs: { text: 'a cat' } },
    7: { class_type: 'CLIPTextEncode', inputs: { text: 'ugly' } },
    9: { class_type: 'SaveImage', inputs: { filename_prefix: 'ComfyUI', images: ['3', 0] } },
  }
  const path = file('Small Cats.json', Buffer.from(JSON.stringify(workflow)))
  mkdirSync(join(dataDir, 'ComfyUI'))
  const main = file('ComfyUI/main.py', Buffer.from(''))
  const { exitCode, stdout, stderr } = await add(`comfyui:${path}`, ['--yes', '--comfyui', join(dataDir, 'ComfyUI')])
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/\n {2}prompt +6\.inputs\.text\n/)
  expect(stdout).toMatch(/\n {2}not found +width, height, num_images: requests that set them will be refused\n/)
  expect(written()).toContain(`id: small-cats\n    engine: comfyui\n    command: [python3, ${main}]`)
  const elsewhere = await add(`comfyui:${path}`, [
    '--yes',
    '--json',
    '--id',
    'far',
    '--comfyui',
    'http://10.0.0.5:8188',
  ])
  expect(json(elsewhere)).toMatchObject({ model: { engine: 'remote', url: 'http://10.0.0.5:8188' }, obstacle: null })
  const editor = file('editor.json', Buffer.from(JSON.stringify({ nodes: [], links: [], version: 0.4 })))
  const refused = await add(`comfyui:${editor}`)
  expect([refused.exitCode, refused.stderr]).toEqual([65, expect.stringContaining('export it in API format')])
  const nowhere = await add(`comfyui:${path}`, ['--yes', '--id', 'third', '--comfyui', dataDir])
  expect(nowhere.stderr).toContain('has no main.py')
})

test.each([
  ['meta-llama/Llama-3.1-8B-Instruct', 'hf:meta-llama/Llama-3.1-8B-Instruct'],
  ['Qwen/Qwen3-8B-GGUF:Q8_0', 'hf:Qwen/Qwen3-8B-GGUF:Q8_0'],
  ['o/n@v1.0:m.gguf', 'hf:o/n@v1.0:m.gguf'],
  ['models/nowhere.gguf', 'models/nowhere.gguf'],
  // A folder of this machine.
  ['test/cli', 'test/cli'],
  ['a/b/c', 'a/b/c'],
  ['./o/n', './o/n'],
  ['comfyui:graphs/one', 'comfyui:graphs/one'],
  ['qwen3-8b', 'qwen3-8b'],
])('%s is read as %s', (text, reference) => expect(asReference(text)).toBe(reference))

test('of a GGUF file whose engine is given and missing, the set-up is named', async () => {
  const { file, add } = setUp()
  const ended = await add(file('m1.gguf', tinyChat()), ['--engine', 'llama-server', '--yes'])
  expect(ended.stdout).toMatch(/\n {2}engine +llama-server \(not installed\)\n/)
  expect(ended.stderr).toContain(
    "The engine 'llama-server' is not installed on this machine. Install it with: infer engine setup llama-server",
  )
})

test('a LoRA is added as an adapter of its base, listed as that, and removed', async () => {
  const { file, add, written, dataDir } = setUp()
  const base = file('base.gguf', tinyChatRandom())
  writeFileSync(join(dataDir, 'infer.yaml'), `models:\n  - id: base # mine\n    source: ${base}\n`)
  const lora = file('support.gguf', tinyLora())
  const { exitCode, stdout } = await add(lora, ['--adapter-of', 'base', '--yes'])
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/an adapter of base \(gguf\)\n {2}memory +16\.0 KiB with its base\nAdded 'support'/),
  ])
  expect(written()).toBe(
    `models:\n  - id: base # mine\n    source: ${base}\n  - id: support\n    adapter:\n      of: base\n      source: ${lora}\n`,
  )
  const listed = (await infer(['model', 'list', '--data-dir', dataDir])).stdout
  expect(listed).toMatch(/^support .* adapter of base$/m)
  const again = await add(lora, ['--adapter-of', 'support', '--yes'])
  expect([again.exitCode, again.stderr]).toEqual([
    65,
    expect.stringContaining("'support' is a name of 'base'. Give that: --adapter-of base"),
  ])
  const used = await infer(['model', 'remove', 'base', '--yes', '--data-dir', dataDir])
  expect([used.exitCode, used.stderr]).toEqual([
    65,
    expect.stringContaining("the adapter 'support' names the base model 'base', which is not in this file"),
  ])
  expect((await infer(['model', 'remove', 'support', '--yes', '--data-dir', dataDir])).exitCode).toBe(0)
  expect(written()).toBe(`models:\n  - id: base # mine\n    source: ${base}\n`)
})

test.each<[what: string, args: string[], words: string]>([
  ['a base that is not there', ['--adapter-of', 'other'], "infer.yaml has no model 'other'. It has: base."],
  ['a setting of the base', ['--adapter-of', 'base', '--context', '512'], '--context is a setting of the base model'],
])('a LoRA is refused with %s', async (_, args, words) => {
  const { file, add } = setUp('models:\n  - id: base\n    source: /m.gguf\n')
  expect((await add(file('lora.gguf', tinyLora()), [...args, '--yes'])).stderr).toContain(words)
})

test('a LoRA of another family is refused with both names', async () => {
  const { file, add, dataDir, written } = setUp()
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    `models:\n  - id: base\n    source: ${file('base.gguf', tinyChatRandom())}\n`,
  )
  const before = written()
  const { stderr } = await add(file('lora.gguf', tinyLora(1, { architecture: 'qwen3' })), [
    '--adapter-of',
    'base',
    '--yes',
  ])
  expect(stderr).toContain("is for models of the architecture 'qwen3', and its base has 'llama'")
  expect(written()).toBe(before)
})
