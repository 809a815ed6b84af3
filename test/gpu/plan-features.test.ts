import { expect, test } from 'vitest'
import { Model } from '../../core/models/model.ts'
import { plannedAffinity, plannedGuesses, plannedSaves } from '../../gpu/plan-features.ts'

const model = (of: object = {}) => Model.parse({ id: 'a', source: '/m.gguf', ...of })

test.each([
  ['one engine', {}, 1, null],
  ['up to four', { replicas: { max: 4 } }, 1, 4],
  ['more than configured, after a change', {}, 2, 2],
  ['no prompts', { replicas: { max: 4 }, tasks: ['std/embeddings'] }, 1, null],
])('affinity: %s', (_, of, engines, most) => {
  const planned = plannedAffinity(model(of), engines)
  expect(planned?.engines ?? null).toBe(most)
  if (planned) expect(planned.detail).toContain(`Of up to ${most} engines`)
})

test.each([
  [{}, undefined, null],
  [
    { speculative: { tokens: 4 } },
    undefined,
    'Up to 4 tokens at once are guessed from what the text repeats, without a further model. This is done only while it is faster for all requests together.',
  ],
  [
    { engine: 'llama-server', speculative: { draft_model: '/secret/small.gguf' } },
    512 << 20,
    "Up to 8 tokens at once are guessed by 'small.gguf', whose weights and cache take 512 MiB of its memory.",
  ],
  [
    { engine: 'vllm', speculative: { draft_model: 'Qwen/Qwen3-0.6B' } },
    undefined,
    "Up to 8 tokens at once are guessed by 'Qwen/Qwen3-0.6B', whose memory is not known.",
  ],
])('guessed tokens: %j', (of, draftBytes, detail) => {
  const planned = plannedGuesses(model(of), { ...(draftBytes !== undefined && { draftBytes }) })
  expect(planned?.detail ?? null).toBe(detail)
  expect(JSON.stringify(planned)).not.toContain('/secret')
})

const limits = { limitBytes: 1 << 30, ageMs: 3_600_000, disk: false, fault: null as string | null }
const counts = { conversations: 2, bytes: 100 }
const caches = (of: object = {}) => ({ of: () => counts, limits: () => ({ ...limits, ...of }) })

test.each([
  ['a model without conversations', { tasks: ['std/embeddings'] }, caches(), null],
  ['an engine that saves none', { engine: 'vllm' }, caches(), 'Its engine saves no conversations.'],
  [
    'a draft model',
    { engine: 'llama-server', speculative: { draft_model: '/d.gguf' } },
    caches(),
    'No conversations are saved: the draft model would not have their memory.',
  ],
  ['no budget', {}, caches({ limitBytes: 0 }), "No conversations are saved: 'caches.memory' is 0."],
  [
    'in memory',
    {},
    caches(),
    'Conversations are saved in main memory for 1h after their last use: at most 1.0 GiB of all models together.',
  ],
  [
    'on disk too',
    {},
    caches({ disk: true }),
    'Conversations are saved in main memory for 1h after their last use, with encrypted copies on disk: at most 1.0 GiB of all models together.',
  ],
])('saved conversations: %s', (_, of, saves, detail) => {
  const { saved, savedDetail } = plannedSaves(model(of), saves)
  expect(savedDetail).toBe(detail)
  expect(saved?.conversations ?? null).toBe(detail?.startsWith('Conversations') ? 2 : null)
})

test('saved conversations: the reason of a folder that cannot be used', () => {
  const saves = { of: () => null, limits: () => ({ ...limits, fault: '/dev/shm cannot be written.' }) }
  expect(plannedSaves(model(), saves)).toEqual({
    saved: null,
    savedDetail: 'No conversations are saved: /dev/shm cannot be written.',
  })
})
