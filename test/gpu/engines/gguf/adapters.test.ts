import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ownerHeader } from '../../../../gpu/engines/owner.ts'
import { tinyLora } from '../../../_lora.ts'
import { type Json, startEngine, user } from './_engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-lora-'))
afterAll(() => rmSync(folder, { recursive: true }))
const fileOf = (name: string, bytes: Buffer): string => {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}
const ann = 'a'.repeat(32)
const conversations = join(folder, 'conversations')
const adapters = [
  { name: 'one', scale: 1, path: fileOf('one.gguf', tinyLora(1)) },
  { name: 'two', scale: 1, path: fileOf('two.gguf', tinyLora(2)) },
  { name: 'none', scale: 0, path: fileOf('none.gguf', tinyLora(1)) },
  { name: 'wide', scale: 1, path: fileOf('wide.gguf', tinyLora(1, { width: 32 })) },
]

type Engine = Awaited<ReturnType<typeof startEngine>>
let engine: Engine
const start = () =>
  startEngine({ model: 'tiny-chat-random.gguf', parallel: 4, context: 1024, adapters, conversations, tasks: textTasks })
const textTasks = ['std/chat-completion', 'std/completion'] as const

beforeAll(async () => {
  mkdirSync(join(conversations, ann), { recursive: true })
  engine = await start()
})

const fields = { temperature: 0, max_tokens: 12 }
async function say(model: string, prompt = 'Tell me', more: Json = {}): Promise<string> {
  const { status, body } = await engine.post('/v1/completions', { model, prompt, ...fields, ...more })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body.choices[0].text
}

test('an adapter changes the answers of its model, each in its own way, and with the scale 0 not at all', async () => {
  const [base, one, two, none] = [await say('toy'), await say('one'), await say('two'), await say('none')]
  expect(new Set([base, one, two]).size).toBe(3)
  expect(none).toBe(base)
  expect(await say('toy')).toBe(base)
})

test('requests for several adapters at once have the answers that each has alone', async () => {
  const names = ['toy', 'one', 'two', 'none', 'one', 'toy', 'two', 'one']
  const prompts = names.map((_, at) => `Number ${at}. `.repeat(9))
  const more = { seed: 4 }
  const alone: string[] = []
  for (const [at, name] of names.entries()) alone.push(await say(name, prompts[at], more))
  const together = await Promise.all(names.map((name, at) => say(name, prompts[at], more)))
  expect(together).toEqual(alone)
  const shared = await Promise.all(names.map((name, at) => say(name, prompts[at])))
  expect(new Set([shared[0], shared[1], shared[2]]).size).toBe(3)
})

test('what one adapter has computed is not reused by another', async () => {
  const cached = async (model: string) => {
    const messages = [user('Tell me a story. '.repeat(20))]
    const { body } = await engine.chat({ model, messages, ...fields, max_tokens: 1 })
    return body.usage.prompt_tokens_details.cached_tokens as number
  }
  // The start token may be that of another request for the same adapter.
  expect(await cached('one')).toBeLessThan(2)
  expect(await cached('two')).toBeLessThan(2)
  expect(await cached('toy')).toBeLessThan(2)
  expect(await cached('one')).toBeGreaterThan(100)
})

test('an unknown adapter is refused, and one that cannot be loaded refuses only its own requests', async () => {
  const refusal = async (model: string) => {
    const { status, body } = await engine.chat({ model, ...fields })
    return [status, body.error.message]
  }
  expect(await refusal('three')).toEqual([404, "This engine has no adapter 'three'."])
  expect(await refusal('wide')).toEqual([502, expect.stringContaining("The adapter 'wide' cannot be loaded")])
})

test('a saved conversation of an adapter is restored for it only', async () => {
  const messages = [user('apples '.repeat(80))]
  const ask = async (model: string) => {
    const asked = { model, messages, ...fields }
    const { body } = await engine.post('/v1/chat/completions', asked, { [ownerHeader]: ann })
    return { cached: body.usage.prompt_tokens_details.cached_tokens as number, text: body.choices[0].message.content }
  }
  const before = await ask('one')
  const saved = await engine.post('/conversations', { max_bytes: { [ann]: 1e9 }, max_ms: 10_000 })
  expect(saved.body).toMatchObject({ saved: 1 })
  expect(readdirSync(join(conversations, ann))).toHaveLength(1)
  engine.child.kill('SIGKILL')
  await engine.exited
  engine = await start()
  expect((await ask('two')).cached).toBeLessThan(2)
  expect((await ask('toy')).cached).toBeLessThan(2)
  const after = await ask('one')
  expect(after.cached).toBeGreaterThan(400)
  expect(after.text).toBe(before.text)
})
