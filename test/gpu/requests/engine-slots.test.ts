import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EngineCall } from '../../../core/models/engine-call.ts'
import { openEngineSlots, type PinnedCall } from '../../../gpu/requests/engine-slots.ts'
import { openSlotFiles } from '../../../gpu/requests/slot-files.ts'
import { openLlamaSlots } from '../../fixtures/llama-slots.ts'
import { keptLog, temporary } from '../launcher/_launch.ts'

const quiet = { accepted() {}, chunk() {}, finished() {}, failed() {} }
const owner = 'a'.repeat(32)

/** The slots of a stand-in, and the folder of its owner. */
function setup(tokenBytes = 20) {
  const folder = temporary()
  const [exchange, own] = [join(folder, 'wkr_1'), join(folder, owner)]
  for (const path of [exchange, own]) mkdirSync(path)
  const engine = openLlamaSlots({ count: 2, folder: exchange })
  const faults: { restore?: Error } = {}
  const act = async (slot: number, action: string, filename: string) =>
    (await engine.answer('POST', `/slots/${slot}?action=${action}`, JSON.stringify({ filename })))!.body as {
      n_saved: number
      n_restored: number
    }
  const slots = openEngineSlots({
    count: 2,
    files: openSlotFiles({ folder, exchange, settings: 'b'.repeat(12) }),
    routes: {
      save: async (slot, name) => (await act(slot, 'save', name)).n_saved,
      restore: async (slot, name) => {
        if (faults.restore) throw faults.restore
        return (await act(slot, 'restore', name)).n_restored
      },
      tokens: async () => engine.slots.map(({ tokens }) => tokens.length),
      async setAdapters(slot, adapters) {
        const body = JSON.stringify({ prompt: 'a', id_slot: slot, cache_prompt: false, ...JSON.parse(`{${adapters}}`) })
        await engine.answer('POST', '/completion', body)
      },
      probe: () => Promise.reject(new Error('It is not probed.')),
    },
    markKey: 'key',
    ownerOf: () => owner,
    tokenBytes,
    useless: () => expect.fail('Every restore has an effect.'),
    log: keptLog(),
  })
  let found = 0
  async function ask(topic: string, more: object = {}, unstored?: boolean): Promise<{ body: object; waited: boolean }> {
    const hold = slots.hold()
    const messages = [{ role: 'user', content: `${topic} `.repeat(300) }]
    const call = {
      path: '/v1/chat/completions',
      body: JSON.stringify({ ...more, messages }),
      unstored,
      stream: true,
      maxBytes: 1e6,
    }
    const pinned = hold.pin(call, quiet, 'org')
    const { call: sent }: PinnedCall = await pinned
    const body = JSON.parse(sent.body as string) as object
    const work = await engine.begin(body)
    found = work.cached
    work.done('an answer')
    hold.ended(true)
    hold.release()
    return { body, waited: pinned instanceof Promise }
  }
  const pin = async (call: EngineCall) => (await slots.hold().pin(call, quiet, 'org')).call
  const pending = () => slots.saving.pending()
  const save = () => slots.saving.save({ maxBytes: { [owner]: 1e6 }, maxMs: 1_000 })
  return { ask, pin, save, pending, faults, cached: () => found, saved: () => readdirSync(own).length }
}

test('conversations get slots of their own, go on there, and wait for nothing', async () => {
  const { ask } = setup()
  expect(await ask('apples')).toMatchObject({ body: { id_slot: 0 }, waited: false })
  expect(await ask('pears')).toMatchObject({ body: { id_slot: 1 }, waited: false })
  expect(await ask('apples')).toMatchObject({ body: { id_slot: 0 }, waited: false })
  expect(await ask('plums')).toMatchObject({ body: { id_slot: 1 }, waited: false })
})

test('what left its slot is restored from its file, before the request', async () => {
  const { ask, save, saved } = setup()
  await ask('apples')
  expect(await save()).toMatchObject({ saved: 1 })
  await ask('pears')
  await ask('plums')
  expect(await ask('apples')).toMatchObject({ waited: true })
  await save()
  expect(saved()).toBe(2)
})

test('what was computed with an adapter is reused and restored for that one only', async () => {
  const { ask, save, saved, cached } = setup()
  const [one, other] = [1, 0.5].map(scale => ({ lora: [{ id: 0, scale }] }))
  await ask('apples', one)
  expect(await ask('apples', one)).toMatchObject({ body: { id_slot: 0 }, waited: false })
  expect(await save()).toMatchObject({ saved: 1 })
  // Neither in its slot nor from its file for the other one.
  await ask('pears', one)
  expect(await ask('apples', other)).toMatchObject({ body: { id_slot: 0, cache_prompt: false }, waited: false })
  expect(cached()).toBe(0)
  await ask('plums', other)
  // The slot had another adapter; the engine gets this one before it restores, and keeps what it has restored.
  const again = await ask('apples', one)
  expect(again).toMatchObject({ body: one, waited: true })
  expect(again.body).not.toHaveProperty('cache_prompt')
  expect(cached()).toBeGreaterThan(250)
  await save()
  expect(saved()).toBeGreaterThan(1)
})

test('several answers are recognized by what is known of the request; its body is not searched then', async () => {
  const { pin } = setup()
  const call = { path: '/v1/chat/completions', stream: true, maxBytes: 1e6 }
  const one = await pin({ ...call, body: '{"n":2}', several: false })
  expect(JSON.parse(one.body as string)).toHaveProperty('id_slot')
  const several = await pin({ ...call, body: '{"m":1}', several: true })
  expect(several.body).toBe('{"m":1}')
})

test('too large an estimate of the memory of a token shrinks with what is saved', async () => {
  const { ask, save, pending } = setup(2_000)
  const estimates: number[] = []
  for (const topic of ['apples', 'pears', 'plums']) {
    await ask(topic)
    estimates.push((await pending())[0]!.bytes)
    expect(await save()).toMatchObject({ saved: 1 })
  }
  expect(estimates[1]!).toBeLessThan(0.9 * estimates[0]!)
  expect(estimates[2]!).toBeLessThan(0.9 * estimates[1]!)
})

test('what must not be stored is not saved', async () => {
  const { ask, save } = setup()
  await ask('apples', { store: false })
  await ask('pears', {}, true)
  expect(await save()).toMatchObject({ saved: 0 })
})

test('a large body is sent without a copy, its slot before it', async () => {
  const { pin } = setup()
  const body = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(2 << 20) }] }))
  const sent = await pin({ path: '/v1/chat/completions', body, members: '"stream":true', stream: true, maxBytes: 1e6 })
  expect(sent.body).toBe(body)
  expect(sent.members).toBe('"id_slot":0,"stream":true')
})

test('the slots of a request with several answers are unknown: none of them is saved', async () => {
  const { ask, save } = setup()
  await ask('apples')
  const { body } = await ask('pears', { n: 2 })
  expect(body).not.toHaveProperty('id_slot')
  expect(await save()).toMatchObject({ saved: 0 })
  expect((await ask('plums', { n: 1, note: 'an "n":2 in a text' })).body).toHaveProperty('id_slot')
  expect(await save()).toMatchObject({ saved: 1 })
})

test.each<[string, Error, number]>([
  ['is kept where the engine was too slow', new DOMException('The operation timed out.', 'TimeoutError'), 1],
  ['is kept where the engine broke off', Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }), 1],
  ['is deleted where the engine refused it', new Error('Unable to restore slot'), 0],
])('a file that was not restored %s', async (_rule, fault, left) => {
  const { ask, save, saved, faults } = setup()
  await ask('apples')
  await save()
  await ask('pears')
  await ask('plums')
  faults.restore = fault
  expect(await ask('apples')).toMatchObject({ waited: true })
  expect(saved()).toBe(left)
})
