import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { ownerHeader } from '../../../../gpu/engines/owner.ts'
import { type Json, startEngine, user } from './_engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-saved-'))
const [ann, ben] = ['a'.repeat(32), 'b'.repeat(32)]
afterEach(() => {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
})

afterAll(() => rmSync(folder, { recursive: true }))

const model = 'tiny-chat-random.gguf'
const start = (more: Json = {}) => startEngine({ model, parallel: 1, context: 1024, conversations: folder, ...more })
type Engine = Awaited<ReturnType<typeof start>>

/** A user who gets folders for what is saved of his requests. */
const owns = (...owners: string[]): void => {
  for (const owner of owners) mkdirSync(join(folder, owner), { recursive: true })
}
const filesOf = (owner: string): string[] => readdirSync(join(folder, owner))
const long = (topic: string) => user(`${topic} `.repeat(500).slice(0, 600))
const ask = async (engine: Engine, owner: string | undefined, messages: Json[], more: Json = {}) => {
  const headers: Record<string, string> = owner ? { [ownerHeader]: owner } : {}
  const fields = { model: 'toy', messages, max_tokens: 4, temperature: 0, ...more }
  const { status, body } = await engine.post('/v1/chat/completions', fields, headers)
  if (status !== 200) throw new Error(JSON.stringify(body))
  const { prompt_tokens, prompt_tokens_details } = body.usage
  return { prompt: prompt_tokens as number, cached: prompt_tokens_details.cached_tokens as number, body }
}
const save = async (engine: Engine, limits: Json = {}) =>
  (await engine.post('/conversations', { max_bytes: { [ann]: 1e9, [ben]: 1e9 }, max_ms: 10_000, ...limits })).body
const pending = async ({ address }: Engine) =>
  ((await (await fetch(`${address}/conversations`)).json()) as Json).conversations as Json[]

/** Ends the engine without any chance to save, and starts another. */
async function restarted(engine: Engine, more: Json = {}): Promise<Engine> {
  engine.child.kill('SIGKILL')
  await engine.exited
  return start(more)
}

test('a conversation is restored in another engine: for its owner only, by equality of its tokens', async () => {
  owns(ann, ben)
  const first = await start()
  const turn = await ask(first, ann, [long('apples')])
  const seeded = { seed: 7, temperature: 1, max_tokens: 24 }
  expect(await pending(first)).toMatchObject([{ owner: ann }])
  expect(await save(first)).toMatchObject({ saved: 1 })
  const drawn = await ask(first, ann, [long('plums')], seeded)
  expect(await save(first)).toMatchObject({ saved: 1 })
  expect(await pending(first)).toEqual([])
  expect(filesOf(ann)).toHaveLength(2)
  expect(filesOf(ben)).toHaveLength(0)

  // Its only slot has another conversation before each request.
  const second = await restarted(first)
  for (const [owner, topic] of [
    [ben, 'apples'],
    [undefined, 'plums'],
    [ann, 'pears'],
  ] as const)
    expect((await ask(second, owner, [long(topic)])).cached).toBeLessThan(16)
  const again = await ask(second, ann, [long('apples')])
  expect(again.cached).toBe(turn.prompt - 1)
  expect(again.body.choices).toEqual(turn.body.choices)
  const redrawn = await ask(second, ann, [long('plums')], seeded)
  expect(redrawn.cached).toBeGreaterThan(drawn.prompt - 130)
  expect(redrawn.body.choices).toEqual(drawn.body.choices)

  // A longer conversation replaces the file of its beginning.
  const before = filesOf(ann)
  await ask(second, ann, [long('apples')], { max_tokens: 8 })
  expect(await save(second)).toMatchObject({ saved: 1 })
  expect(filesOf(ann)).toHaveLength(2)
  expect(filesOf(ann).filter(name => !before.includes(name))).toHaveLength(1)
  await ask(second, ben, [long('pears')])
  const messages = [long('apples'), turn.body.choices[0].message, user('and?')]
  const next = await ask(second, ann, messages)
  expect(next.prompt - next.cached).toBeLessThanOrEqual(64)

  const third = await restarted(second, { flashAttention: 'on' })
  expect((await ask(third, ann, [long('apples')])).cached).toBeLessThan(16)
})

test('nothing is saved without an owner, against the will of the caller, or beyond the limits', async () => {
  owns(ann)
  const engine = await start()
  for (const request of [
    () => ask(engine, undefined, [long('apples')]),
    () => ask(engine, ann, [long('apples')], { store: false }),
    () => ask(engine, ann, [user('hi')]),
    () => ask(engine, ben, [long('apples')]),
    () => ask(engine, '../../x', [long('apples')]),
  ]) {
    await request()
    expect(await pending(engine)).toEqual([])
    expect(await save(engine)).toEqual({ saved: 0, bytes: 0 })
  }
  await ask(engine, ann, [long('apples')])
  const bytes = (await pending(engine))[0]!.bytes as number
  expect(await save(engine, { max_bytes: { [ann]: bytes - 1, [ben]: 1e9 } })).toEqual({ saved: 0, bytes: 0 })
  expect(await save(engine, { max_ms: 0 })).toEqual({ saved: 0, bytes: 0 })
  expect(readdirSync(folder)).toEqual([ann])
  expect(filesOf(ann)).toEqual([])
  const done = await save(engine, { max_bytes: { [ann]: bytes } })
  expect(done.saved).toBe(1)
  expect(done.bytes).toBeLessThanOrEqual(bytes)

  // Behind the tokens the file is damaged.
  const path = join(folder, ann, filesOf(ann)[0]!)
  writeFileSync(path, readFileSync(path).subarray(0, -1000))
  await ask(engine, undefined, [long('pears')])
  expect((await ask(engine, ann, [long('apples')])).cached).toBeLessThan(16)
  expect(filesOf(ann)).toEqual([])
})
