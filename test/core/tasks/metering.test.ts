import { expect, test } from 'vitest'
import { costOf, priceSchema } from '../../../core/models/price.ts'
import { textMetering } from '../../../core/tasks/metering.ts'

const price = priceSchema().parse({ output_per_million_tokens: 1_000_000 })
const asked = { length: 10, contextLength: null }

test.each([
  { n: 1e308, max_tokens: 1e308 },
  { best_of: 1e308 },
  { n: Number.MAX_SAFE_INTEGER, max_tokens: Number.MAX_SAFE_INTEGER },
  { max_completion_tokens: 1e308, prompt: ['a', 'b'] },
])('an estimate of %j is a cost that can be added up', inputs => {
  const cost = costOf(price, textMetering.estimate({ ...asked, inputs }).usage)
  expect(cost).toBeGreaterThan(0)
  expect(Number.isSafeInteger(2 * cost)).toBe(true)
})
