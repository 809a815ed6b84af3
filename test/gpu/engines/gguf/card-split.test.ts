import { describe, expect, test } from 'vitest'
import { type CardSplit, divideLayers } from '../../../../gpu/engines/gguf/card-split.ts'

/** Layers of one gigabyte with an output of two, beside one gigabyte on each card. */
const model = (layers: number, by: CardSplit['by']): CardSplit => ({
  each: 1,
  layers: [...Array.from({ length: layers }, () => 1), 2],
  by,
})

describe('layers are divided', () => {
  const cases: [what: string, split: CardSplit, free: number[], divided: object | undefined][] = [
    ['evenly among equal cards', model(28, 'booked'), [23, 23], { layers: [15, 14], bytes: [16, 16] }],
    ['in proportion to what uneven cards have', model(28, 'booked'), [23, 12], { layers: [20, 9], bytes: [21, 11] }],
    ['so that a nearly full card gets few', model(28, 'booked'), [40, 4], { layers: [28, 1], bytes: [29, 3] }],
    ['as full as each card can be, where proportions do not fit', model(20, 'booked'), [21, 3], { bytes: [21, 3] }],
    ['not at all where they are too large', model(28, 'booked'), [23, 8], undefined],
    ['not to a card without room for its buffers', model(4, 'booked'), [23, 0.5], undefined],
    // llama.cpp counts layers, whatever they take: a card with a third of the free memory gets a third of them.
    ['by the engine itself, in proportion to free memory', model(26, 'free'), [24, 12], { layers: [18, 9] }],
    ['by the engine itself, which does not know what else each needs', model(26, 'free'), [24, 6], undefined],
  ]
  test.each(cases)('%s', (_what, split, free, divided) => {
    const made = divideLayers(split, free)
    if (divided === undefined) expect(made).toBeUndefined()
    else expect(made).toMatchObject(divided)
  })
})
