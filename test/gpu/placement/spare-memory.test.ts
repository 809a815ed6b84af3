import { expect, test } from 'vitest'
import { type CardUse, spareShare } from '../../../gpu/placement/spare-memory.ts'

const use = (modelId: string, share: number, more: Partial<CardUse> = {}): CardUse => ({
  modelId,
  share,
  cards: 1,
  replicas: 1,
  grows: true,
  ...more,
})
const fixed = { grows: false }
const cards = (capacities: readonly number[]) => capacities.map(capacity => ({ capacity }))

test.each<[name: string, others: CardUse[], capacities: number[], spare: number]>([
  ['alone on a card it gets the rest', [], [80], 60],
  ['alone on two cards it gets the rest of one', [], [80, 80], 60],
  ['a small model keeps its memory', [use('small', 10, fixed)], [80], 50],
  ['two that grow divide the rest', [use('b', 20)], [80], 20],
  ['a model that needs the other card takes nothing', [use('b', 70, fixed)], [80, 80], 60],
  ['those that do not fit at once take turns', [use('b', 70, fixed)], [80], 0],
  ['replicas that may start are counted', [use('b', 20, { ...fixed, replicas: 2 })], [80], 20],
  ['one on two cards leaves as much on both', [use('b', 30, { ...fixed, cards: 2 })], [80, 80], 30],
  ['no card is no memory', [], [], 0],
])('%s', (_, others, capacities, spare) => {
  expect(spareShare('a', [use('a', 20), ...others], cards(capacities))).toBe(spare)
})

test('a model on two cards grows as far as the fuller of them allows', () => {
  expect(spareShare('a', [use('a', 20, { cards: 2 }), use('b', 15, fixed)], cards([40, 80]))).toBe(5)
})

test('an engine that takes the same share of a larger card takes more of it, and leaves that much less', () => {
  const share = use('a', 20, { cards: 2, takesShare: true })
  expect(spareShare('a', [share], cards([40, 80]))).toBe(20)
  expect(spareShare('a', [share, use('b', 10, fixed)], cards([40, 80]))).toBe(10)
  expect(spareShare('a', [{ ...share, share: 30 }, use('b', 25, fixed)], cards([40, 80]))).toBe(0)
})
