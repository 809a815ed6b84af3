import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLlama, openMatcher, origin, schemaGrammar } from './_grammar.ts'

let llama: Awaited<ReturnType<typeof openLlama>>
beforeAll(async () => {
  llama = await openLlama()
})
afterAll(() => llama.dispose())

const whole = fc.oneof(
  fc.integer({ min: -30, max: 30 }),
  fc.integer({ min: -3000, max: 3000 }),
  fc.integer({ min: -(10 ** 15) + 1, max: 10 ** 15 - 1 }),
  fc.constantFrom(0, 9, 10, 99, 100, 999, 1000, -9, -10, -99, -100),
)

test('integers within bounds match, and no others', async () => {
  await fc.assert(
    fc.asyncProperty(whole, whole, fc.array(whole), async (a, b, others) => {
      const [minimum, maximum] = [Math.min(a, b), Math.max(a, b)]
      const matches = await openMatcher(llama, schemaGrammar({ type: 'integer', minimum, maximum }, origin))
      const near = [a, b].flatMap(bound => [bound - 1, bound, bound + 1, bound * 10, Math.trunc(bound / 10), -bound])
      for (const value of [...near, ...others].filter(one => Number.isSafeInteger(one) && !Object.is(one, -0)))
        expect([minimum, maximum, value, matches(String(value))]).toEqual([
          minimum,
          maximum,
          value,
          minimum <= value && value <= maximum,
        ])
    }),
    { numRuns: 200 },
  )
})

/** Decimal numbers of at most 15 digits, in the usual notation. */
const decimal = fc
  .tuple(fc.integer({ min: -2000, max: 2000 }), fc.integer({ min: 0, max: 4 }))
  .map(([digits, places]) => Number((digits / 10 ** places).toFixed(places)))

test('numbers within bounds match, and no others', async () => {
  await fc.assert(
    fc.asyncProperty(
      decimal,
      decimal,
      fc.boolean(),
      fc.boolean(),
      fc.array(decimal),
      async (a, b, openLow, openHigh, others) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)]
        fc.pre(low < high)
        const schema = {
          type: 'number',
          [openLow ? 'exclusiveMinimum' : 'minimum']: low,
          [openHigh ? 'exclusiveMaximum' : 'maximum']: high,
        }
        const matches = await openMatcher(llama, schemaGrammar(schema, origin))
        const near = [low, high].flatMap(bound => [-0.0001, 0, 0.0001, 0.5].map(by => Number((bound + by).toFixed(5))))
        for (const value of [...near, ...others].filter(one => !Object.is(one, -0)))
          expect([schema, value, matches(String(value))]).toEqual([
            schema,
            value,
            (openLow ? low < value : low <= value) && (openHigh ? value < high : value <= high),
          ])
      },
    ),
    { numRuns: 200 },
  )
})
