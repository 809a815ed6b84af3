import { expect, test } from 'vitest'
import { modelCatalog } from '../../../core/models/model-catalog/model-catalog.ts'
import { wantedContext, writes } from '../../../gpu/engines/gguf/sizing.ts'
import { catalogShape } from '../../../gpu/estimate/catalog-shape.ts'
import { type EstimatedModel, ggufNeedOn } from '../../../gpu/estimate/estimate.ts'
import { eightBitContext, longerContextTexts } from '../../../gpu/estimate/longer-context.ts'
import type { PlacementTarget } from '../../../gpu/estimate/target.ts'

const GiB = 2 ** 30
const card = (...gib: number[]): PlacementTarget => {
  const cards = gib.map(size => Math.floor(size * 0.97 * GiB))
  return { kind: 'gpu', devices: 1, capacity: cards[0]!, cards, slots: 4 }
}
const processor = (gib: number): PlacementTarget => ({ kind: 'cpu', devices: 1, capacity: gib * GiB, slots: 4 })
const shapes = modelCatalog().flatMap(model =>
  model.builds.flatMap(build => (writes(model.tasks) ? (catalogShape(model, build) ?? []) : [])),
)
const chat: EstimatedModel = { tasks: ['std/chat-completion'], context_length: undefined }
const adviceOf = (shape: (typeof shapes)[number], model: EstimatedModel, target: PlacementTarget) =>
  eightBitContext(shape, model, target, ggufNeedOn(shape, model, target))

test.each(['gguf', 'llama-server'])(
  '%s: with the settings that are named the context is the one that is said',
  engine => {
    let advised = 0
    for (const shape of shapes)
      for (const target of [
        card(8),
        card(12),
        card(16),
        card(24),
        card(24, 24),
        card(48),
        processor(8),
        processor(32),
      ]) {
        const model = { ...chat, engine }
        const before = ggufNeedOn(shape, model, target).sizing
        const advice = adviceOf(shape, model, target)
        if (!advice) continue
        advised++
        expect(before!.context).toBeLessThan(wantedContext(shape))
        expect(advice.tokens).toBeGreaterThan(before!.context)
        const change = engine === 'gguf' ? { kv_type: 'q8_0' as const } : { args: ['-ctk', 'q8_0', '-ctv', 'q8_0'] }
        const after = ggufNeedOn(shape, { ...model, ...change }, target).sizing!
        expect(after.context).toBe(advice.tokens)
        expect(after.gpuLayers).toBeGreaterThanOrEqual(before!.gpuLayers)
        // A context that was written down when the memory allowed no more gets the same advice.
        const written = { ...model, context_length: before!.context }
        const settings = [...advice.settings, `context_length: ${advice.tokens}`]
        expect(adviceOf(shape, written, target)).toEqual({ tokens: advice.tokens, settings })
        const both = ggufNeedOn(shape, { ...written, ...change, context_length: advice.tokens }, target)
        expect(both.sizing!.context).toBe(advice.tokens)
      }
    expect(advised).toBeGreaterThan(20)
  },
)

const shape = catalogShape(
  modelCatalog().find(({ name }) => name === 'qwen3-14b')!,
  modelCatalog().find(({ name }) => name === 'qwen3-14b')!.builds[0]!,
)!

test.each<[what: string, model: Partial<EstimatedModel>, target: PlacementTarget, of?: Partial<typeof shape>]>([
  ['the memory has room', {}, card(80)],
  ['a shorter context is configured than fits', { context_length: 1024 }, card(12)],
  ['the numbers of the cache are configured', { kv_type: 'q4_0' }, card(12)],
  ['flash attention is switched off', { flash_attention: 'off' }, card(12)],
  ['flash attention is uncertain', {}, card(12), { architecture: 'gemma2' }],
  ['the heads have no whole blocks', {}, card(12), { keyLength: 80, valueLength: 80 }],
  ['llama-server has a context by its options', { engine: 'llama-server', args: ['-c', '4096'] }, card(12)],
  ['the model generates no text', { tasks: ['std/embeddings'] }, card(12)],
  ['nothing fits', {}, processor(1)],
])('nothing is said where %s', (_, model, target, of = {}) => {
  expect(adviceOf({ ...shape, ...of }, { ...chat, ...model }, target)).toBeUndefined()
})

test('each way is a sentence', () => {
  expect(adviceOf(shape, chat, card(12))).toBeDefined()
  expect(
    longerContextTexts({
      tokens: 8192,
      eightBit: { tokens: 16_384, settings: ['kv_type: q8_0', 'context_length: 16384'] },
      cards: { devices: 2, tokens: 32_768 },
    }),
  ).toEqual([
    'With an 8-bit cache (`kv_type: q8_0` and `context_length: 16384`) the context would be 16384 tokens instead of 8192.',
    'With 2 free GPUs the context would be 32768 tokens instead of 8192.',
  ])
  expect(longerContextTexts({ tokens: 8192 })).toEqual([])
})
