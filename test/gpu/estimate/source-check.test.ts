import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { writeGguf } from '../../../bin/gguf-writer.ts'
import { tinyEmbed } from '../../../bin/tiny-bert.ts'
import { tinyChat } from '../../../bin/tiny-chat.ts'
import { Model } from '../../../core/models/model.ts'
import { checkSource } from '../../../gpu/estimate/source-check.ts'

const root = mkdtempSync(join(tmpdir(), 'infer-source-'))
afterAll(() => rmSync(root, { recursive: true }))

const file = (name: string, content: string | Uint8Array): string => {
  const path = join(root, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return path
}

const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 4920739232\n`
/** The same bytes with another text of the same length. */
const changed = (bytes: Uint8Array, from: string, to: string): Buffer =>
  Buffer.from(Buffer.from(bytes).toString('latin1').replace(from, to), 'latin1')
const named = (architecture: string) => writeGguf({ 'general.architecture': ['string', architecture] }, [])
const config = '{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}'
const index = JSON.stringify({ weight_map: { a: 'm-1-of-2.safetensors', b: 'm-2-of-2.safetensors' } })

const chat = file('chat.gguf', tinyChat())
const encoder = file('encoder.gguf', tinyEmbed())
const template = file('template.gguf', changed(tinyChat(), '{% endfor -%}', '{% endfro -%}'))
file(
  'part-00001-of-00003.gguf',
  writeGguf({ 'split.count': ['u32', 3], 'general.architecture': ['string', 'llama'] }, []),
)
file('part-00003-of-00003.gguf', named('llama'))
file('pointers/model.safetensors', pointer)
file('shards/config.json', config)
file('shards/model.safetensors.index.json', index)
file('shards/m-1-of-2.safetensors', 'weights')
file('empty/config.json', config)
file('whole/model.safetensors.index.json', index)
for (const shard of [1, 2]) file(`whole/m-${shard}-of-2.safetensors`, 'weights')
file('cache/snapshots/0123/model.safetensors', 'weights')
const pipelineIndex = (parts: object) => JSON.stringify({ _class_name: 'FluxPipeline', force_zeros: true, ...parts })
const listed = { transformer: ['diffusers', 'FluxTransformer2DModel'], safety_checker: [null, null] }
file('pipeline/model_index.json', pipelineIndex({ ...listed, text_encoder: ['transformers', 'CLIPTextModel'] }))
file('pipeline/transformer/diffusion_pytorch_model.safetensors', 'weights')
file('pipeline/text_encoder/config.json', '{}')
// Folders that are no part of the model, in a pipeline and beside weights.
file('strays/model_index.json', pipelineIndex(listed))
file('strays/transformer/diffusion_pytorch_model.safetensors', 'weights')
file('strays/old_encoder/config.json', '{}')
file('strays/safety_checker/config.json', '{}')
for (const name of ['strays/original', 'whole-strays/original']) file(`${name}/model.safetensors`, pointer)
file('whole-strays/model.safetensors', 'weights')

const check = (engine: string, source: string, more: object = {}) =>
  checkSource(Model.parse({ id: 'm', engine, source: source.startsWith('/') ? source : join(root, source), ...more }))
const embeddings = { tasks: ['std/embeddings'] }

describe('what the built-in engine can never load', () => {
  const cases: [why: string, source: string, lies: 'files' | 'model', says: RegExp, more?: object][] = [
    ['no file', 'none.gguf', 'files', /none\.gguf' does not exist\.$/],
    ['a pointer', file('pointer.gguf', pointer), 'files', /is a pointer of Git LFS.*git lfs pull/],
    ['missing parts', 'part-00001-of-00003.gguf', 'files', /lacks 'part-00002-of-00003\.gguf': put all parts/],
    ['half a file', file('half.gguf', tinyChat().subarray(0, 90_000)), 'files', /is incomplete.*Download it again/],
    ['another kind of file', file('text.gguf', 'x'.repeat(2_000)), 'files', /does not begin with 'GGUF'/],
    ['an unknown architecture', file('arch.gguf', named('foobar')), 'model', /'foobar' is unknown.*llama-server/],
    ['one without models', file('clip.gguf', named('clip')), 'model', /kind 'mmproj'/],
    [
      'a template that is not valid',
      template,
      'model',
      /chat template.*not valid: Unknown statement type: endfro\. .*std\/completion/,
    ],
    ['an encoder that should chat', encoder, 'model', /encoder and generates no text.*std\/embeddings/],
  ]
  test.each(cases)('%s', async (_, source, lies, says, more) => {
    const { fault, warnings } = await check('gguf', source, more)
    expect([fault?.lies, warnings]).toEqual([lies, []])
    expect(fault?.text).toMatch(says)
  })
})

test.each([
  ['gguf', chat, {}],
  ['gguf', encoder, embeddings],
  // A template is read for chats only.
  ['gguf', template, { tasks: ['std/completion'] }],
  ['vllm', 'whole', {}],
  ['speaches', 'cache', { tasks: ['std/audio-speech'] }],
  // Names on a hub, and what only others can read.
  ['vllm', 'hub', { source: 'meta-llama/Llama-3.3-70B-Instruct' }],
  ['custom', 'none', { command: ['serve', '{socket}'] }],
  ['remote', 'none', { url: 'http://127.0.0.1:1' }],
])('%s takes %s', async (engine, source, more) => {
  expect(await check(engine, source, more)).toEqual({ fault: undefined, mistakes: [], warnings: [] })
})

test.each([
  ['vllm', 'empty', /has no weights/],
  ['vllm', 'pointers', /model\.safetensors' is a pointer of Git LFS/],
  ['sglang', 'shards', /lacks 'm-2-of-2\.safetensors', which model\.safetensors\.index\.json lists/],
  ['python', 'pipeline', /text_encoder' has no weights/],
  ['llama-server', 'none.gguf', /does not exist/],
])('no engine loads it: %s from %s', async (engine, source, says) => {
  expect((await check(engine, source)).fault?.text).toMatch(says)
})

test.each(['strays', 'whole-strays'])('a folder that no engine reads is a warning: %s', async folder => {
  const { fault, warnings } = await check('python', folder)
  expect(fault).toBeUndefined()
  expect(warnings).toEqual([expect.stringMatching(/original\/model\.safetensors' is a pointer of Git LFS/)])
})

test('what another engine may know is a warning', async () => {
  const { fault, warnings } = await check('llama-server', 'arch.gguf')
  expect([fault, warnings]).toEqual([undefined, [expect.stringMatching(/'foobar' is unknown.*'llama-server' may not/)]])
  expect((await check('llama-server', template)).warnings).toEqual([expect.stringContaining('endfro')])
})

test('a context above that of the training is a mistake, unless options stretch it', async () => {
  const more = { context_length: 5_000 }
  const says = /5000 tokens is above the 4096/
  expect((await check('gguf', chat, more)).mistakes).toEqual([expect.stringMatching(says)])
  expect((await check('llama-server', chat, more)).warnings).toEqual([expect.stringMatching(says)])
  const stretched = { ...more, args: ['--rope-scaling', 'yarn'] }
  expect((await check('llama-server', chat, stretched)).warnings).toEqual([])
  expect((await check('gguf', chat, { context_length: 4_096 })).mistakes).toEqual([])
})
