import { createSecretKey } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { EngineCall, EngineListener } from '../../../core/models/engine-call.ts'
import { Model } from '../../../core/models/model.ts'
import { openCaches } from '../../../gpu/caches/caches.ts'
import { openEngineSlots } from '../../../gpu/requests/engine-slots.ts'
import { openSlotFiles } from '../../../gpu/requests/slot-files.ts'
import type { SlotRoutes } from '../../../gpu/requests/slot-routes.ts'
import type { Asked } from '../../fixtures/engine-answers.ts'
import { openLlamaSlots } from '../../fixtures/llama-slots.ts'
import { keptLog, temporary } from '../launcher/_launch.ts'

/** Run with 1,000 by hand: all of it takes 8 s of processor time. */
const swaps = 300
const limit = 150 << 10
const organizations = ['ann', 'ben', 'eve']

type StandIn = ReturnType<typeof openLlamaSlots>
type Conversation = { role: string; content: string }[]

/** Its words name their organization; the first message is that of several organizations. */
const conversation = (organization: string, topic: number, turns: number): Conversation => [
  { role: 'system', content: 'shared '.repeat(topic % 2 === 0 ? 120 : 20) },
  ...Array.from({ length: turns }, (_, turn) => ({
    role: 'user',
    content: Array.from({ length: 140 }, (_, at) => `${organization}:${topic}.${turn}.${at}`).join(' '),
  })),
]
const organizationIn = (tokens: readonly string[]): string[] => [
  ...new Set(tokens.flatMap(token => /"?([a-z]+):/.exec(token)?.[1] ?? [])),
]

/** The routes of a stand-in. `restored` is called with the slot after each restore, and `beforeSave` before a save. */
function routesOf(engine: StandIn, restored: (slot: number) => void, beforeSave: () => Promise<unknown>): SlotRoutes {
  const act = async (slot: number, action: string, filename: string) => {
    await (action === 'save' ? beforeSave() : setImmediate())
    const answer = await engine.answer('POST', `/slots/${slot}?action=${action}`, JSON.stringify({ filename }))
    if (answer!.status !== 200) throw new Error(JSON.stringify(answer!.body))
    return answer!.body as { n_saved: number; n_restored: number }
  }
  return {
    save: async (slot, name) => (await act(slot, 'save', name)).n_saved,
    async restore(slot, name) {
      const { n_restored } = await act(slot, 'restore', name)
      restored(slot)
      return n_restored
    },
    tokens: async () => engine.slots.map(({ tokens }) => tokens.length),
    setAdapters: () => Promise.resolve(),
    probe: () => Promise.reject(new Error('It is not probed.')),
  }
}

const quiet: EngineListener = { accepted() {}, chunk() {}, finished() {}, failed() {} }

test('in many swaps no slot is saved for or restored to another organization, and the budget holds', async () => {
  const dataDir = temporary()
  const log = keptLog()
  const settings = { memory: limit, age: 3_600_000, disk: false }
  const caches = openCaches({
    dataDir,
    key: createSecretKey(Buffer.alloc(32, 1)),
    settings,
    machineBytes: 1 << 30,
    log,
  })
  const root = () => realpathSync(join(dataDir, 'run', 'conversations'))
  onTestFinished(async () => {
    const folder = root()
    await caches.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const models = ['one', 'two'].map(id => Model.parse({ id, source: `/models/${id}.gguf` }))
  let seed = 7
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const deleted = new Set<string>()
  const counts = { restored: 0, saved: 0, cached: 0 }

  /** One engine from its start to its end. */
  async function swap(at: number): Promise<void> {
    const folder = (await caches.folderFor(models[random(2)]!))!
    const exchange = join(folder, `wkr_${at}`)
    mkdirSync(exchange)
    const engine = openLlamaSlots({ count: 2, folder: exchange })
    const contents = new Map<number, string[]>()
    const files = openSlotFiles({ folder, exchange, settings: 'a'.repeat(12) })
    await files.read()
    const slots = openEngineSlots({
      count: 2,
      files,
      routes: routesOf(
        engine,
        slot => contents.set(slot, organizationIn(engine.slots[slot]!.tokens)),
        // A request that came after the save was sent is computed before it.
        async () => random(4) === 0 && request(organizations[random(3)]!),
      ),
      markKey: caches.markKey,
      ownerOf: id => caches.ownerIn(folder, id),
      tokenBytes: 20,
      useless: () => expect.fail('Every restore has an effect.'),
      log,
    })

    async function request(organization: string): Promise<void> {
      const hold = slots.hold()
      const messages = conversation(organization, random(3), 2 + random(3))
      const body = JSON.stringify({ model: 'm', messages, temperature: 0 })
      const how = random(10)
      const call: EngineCall = { path: '/v1/chat/completions', body, stream: true, maxBytes: 1e6 }
      if (how === 0) {
        // A form: the engine chooses the slot.
        const form = { ...call, body: { bytes: 1, open: () => expect.fail('It is not sent.') } }
        await hold.pin(form, quiet, organization)
        const work = await engine.begin({ messages })
        await setImmediate()
        work.done('an answer')
        hold.ended(true)
        return hold.release()
      }
      const { call: pinned, listener } = await hold.pin(call, quiet, organization)
      const asked = JSON.parse(pinned.body as string) as Asked & { id_slot?: number }
      const slot = asked.id_slot
      if (slot !== undefined && contents.has(slot)) {
        counts.restored++
        expect(contents.get(slot)).toEqual([organization])
        contents.delete(slot)
      }
      if (how === 1) {
        // The client left before the engine began: the slot has what it had.
        hold.ended(false)
        return hold.release()
      }
      const work = await engine.begin(asked)
      if (random(3) === 0) await setImmediate()
      if (work.cached > 150) counts.cached++
      listener.chunk(Buffer.from(`data: {"usage":{"prompt_tokens_details":{"cached_tokens":${work.cached}}}}\n\n`))
      work.done(how === 2 ? '' : 'an answer')
      if (how !== 2) listener.finished()
      hold.ended(true)
      hold.release()
    }

    for (let turn = 0; turn < 2; turn++) {
      const together = [request(organizations[random(3)]!)]
      if (random(3) === 0) together.push(request(organizations[random(3)]!))
      if (random(4) === 0) together.push(caches.save(slots.saving, 1_000))
      await Promise.all(together)
    }
    if (random(5) > 0) await caches.save(slots.saving, 1_000)
    rmSync(exchange, { recursive: true })
  }

  const owners = new Map<string, string>()
  const states = () =>
    readdirSync(root(), { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.state'))
  const read = new Set<string>()
  for (let at = 0; at < swaps; at++) {
    await swap(at)
    for (const id of organizations)
      if (!owners.has(id)) owners.set(caches.ownerIn(join(dataDir, 'run', 'conversations', 'unused'), id) ?? '', id)
    let bytes = 0
    for (const name of states()) {
      const path = join(root(), name)
      const { size, ino } = statSync(path)
      bytes += size
      if (read.has(`${ino} ${name}`)) continue
      read.add(`${ino} ${name}`)
      counts.saved++
      const content = readFileSync(path)
      const count = content.readUInt32LE(8)
      const tokens = JSON.parse(content.subarray(12, content.length - 16 * count).toString()) as string[]
      // The whole conversation of its organization, and of no other.
      expect(organizationIn(tokens)).toEqual([owners.get(name.split('/').at(-2)!)])
    }
    expect(bytes).toBeLessThanOrEqual(limit)
    if (at === swaps * 0.7) {
      const [owner] = [...owners].find(([, id]) => id === 'ben')!
      await caches.forget('ben')
      deleted.add(owner)
    }
    expect(states().filter(name => deleted.has(name.split('/').at(-2)!))).toEqual([])
  }
  expect(counts.restored).toBeGreaterThan(swaps / 10)
  expect(counts.cached).toBeGreaterThan(swaps / 5)
  expect(counts.saved).toBeGreaterThan(swaps / 10)
})
