import { createSecretKey } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { openCaches } from '../../../gpu/caches/caches.ts'
import { noMutex } from '../../../gpu/engines/gguf/mutex.ts'
import { openSavedStates } from '../../../gpu/engines/gguf/saved-states.ts'
import { commonStart, type Slot } from '../../../gpu/engines/gguf/slots.ts'
import { keptLog, temporary } from '../launcher/_launch.ts'

/** Run with 1,000 by hand: all of it takes 13 s of processor time. */
const swaps = 250
const tokenBytes = 16
const limit = 800 << 10

/** The memory of llama.cpp: it writes the tokens of a sequence with bytes that depend on them, as states do. */
function fakeContext() {
  const memory = new Map<number, number[]>()
  return {
    memory,
    async saveSequenceStateToFile(path: string, sequence: number, tokens: Uint32Array): Promise<number> {
      expect(tokens.join()).toBe(memory.get(sequence)?.join())
      const head = Uint32Array.of(0x67677371, 3, tokens.length, ...tokens)
      const bytes = Buffer.concat([
        Buffer.from(head.buffer),
        Buffer.alloc(tokens.length * tokenBytes, tokens[0]! % 256),
      ])
      writeFileSync(path, bytes)
      return bytes.length
    },
    async loadSequenceStateFromFile(path: string, sequence: number): Promise<Uint32Array> {
      const bytes = readFileSync(path)
      const tokens = Array.from({ length: bytes.readUInt32LE(8) }, (_, at) => bytes.readUInt32LE(12 + 4 * at))
      memory.set(sequence, tokens)
      return Uint32Array.from(tokens)
    },
    getSequenceKvCacheMaxPosition: (sequence: number) => (memory.get(sequence)?.length ?? 0) - 1,
    disposeSequence: (sequence: number) => void memory.delete(sequence),
  }
}

/** The organizations and their conversations, which begin alike within each group of three. */
const organizations = ['org_a', 'org_b', 'org_c', 'org_d']
const conversation = (organization: number, topic: number, turns: number): number[] =>
  Array.from({ length: 260 + 140 * turns }, (_, at) => (at < 200 ? topic % 3 : 1_000 * organization + 10 * topic) + at)

test('in many swaps no conversation is wrong, the budget holds, and nothing is left of the deleted', async () => {
  const dataDir = temporary()
  const log = keptLog()
  const settings = { memory: limit, age: 3_600_000, disk: false }
  const open = () =>
    openCaches({ dataDir, key: createSecretKey(Buffer.alloc(32, 1)), settings, machineBytes: 1 << 30, log })
  let caches = open()
  onTestFinished(async () => {
    const folder = realpathSync(join(dataDir, 'run', 'conversations'))
    await caches.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const models = ['one', 'two'].map(id => Model.parse({ id, source: `/models/${id}.gguf` }))
  let seed = 11
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const deleted = new Set<string>()
  const counts = { restored: 0, saved: 0, refused: 0 }
  const filesOf = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.state'))

  for (let swap = 0; swap < swaps; swap++) {
    const folder = (await caches.folderFor(models[random(2)]!))!
    const context = fakeContext()
    const options = { folder, context, contextSize: 4_096, settings: ['build'], tokenBytes, exclusive: noMutex, log }
    const states = openSavedStates(options)
    const slot: Slot = { sequence: 0, tokens: [], usedAt: 1, exact: 0, held: false }
    const organization = random(organizations.length)
    const id = organizations[organization]!
    const owner = caches.ownerIn(folder, id)
    expect(owner === undefined).toBe(deleted.has(id))
    const prompt = conversation(organization, random(9), random(5))
    if (owner !== undefined) {
      const before = existsSync(join(folder, owner)) ? readdirSync(join(folder, owner)) : []
      const work = { prompt, piece: 64, reproducible: random(4) === 0, have: random(2) * 150 }
      if (await states.restore(slot, owner, work)) {
        counts.restored++
        // What the engine believes is what the memory has, and the file was one of the same organization.
        expect(slot.tokens.join()).toBe(context.memory.get(0)?.join())
        expect(commonStart(slot.tokens, prompt)).toBeGreaterThanOrEqual(work.have + 128)
        expect(Math.floor((slot.tokens.at(-1)! - slot.tokens.length + 1) / 1_000)).toBe(organization)
        expect(before.length).toBeGreaterThan(0)
      } else expect(slot.tokens).toEqual([])
    }
    context.memory.set(0, prompt)
    Object.assign(slot, { tokens: [...prompt], exact: random(2) * prompt.length, owner })
    await caches.save(
      {
        pending: () => states.pending([slot]),
        async save(limits) {
          const done = await states.save([slot], limits, work => work())
          if (done.saved > 0) counts.saved++
          else counts.refused++
          return done
        },
      },
      1_000,
    )
    const root = join(dataDir, 'run', 'conversations')
    const bytes = filesOf(root).reduce((sum, name) => sum + statSync(join(root, name)).size, 0)
    expect(bytes).toBeLessThanOrEqual(limit)
    expect(caches.total()).toMatchObject({ conversations: filesOf(root).length, bytes })
    if (swap === swaps * 0.6) {
      await caches.forget(id)
      deleted.add(id)
      expect(readdirSync(root).flatMap(name => readdirSync(join(root, name)))).not.toContain(owner)
    }
    if (swap === swaps * 0.8) {
      // A restart of the server finds what is saved.
      await caches.close()
      caches = open()
      deleted.clear()
    }
  }
  expect(counts.restored).toBeGreaterThan(swaps / 10)
  expect(counts.saved).toBeGreaterThan(swaps / 5)
})
