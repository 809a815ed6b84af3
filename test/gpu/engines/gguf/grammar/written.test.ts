import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Failure } from '../../../../../core/failure.ts'
import { full } from '../../../../_full.ts'
import { objectGrammar, openLlama, origin, schemaGrammar } from './_grammar.ts'
import { openWriter } from './_model.ts'
import { schemas } from './_schemas.ts'

const cases = full ? 500 : 150
let llama: Awaited<ReturnType<typeof openLlama>>
let writer: Awaited<ReturnType<typeof openWriter>>
beforeAll(async () => {
  llama = await openLlama()
  writer = await openWriter(llama, 400)
})
afterAll(async () => {
  await writer.close()
  await llama.dispose()
})

/** A property counts only if it is the object's own; otherwise `constructor` would count. */
const ajv = new Ajv2020({ strict: false, ownProperties: true, logger: false })
const withFormats = addFormats as unknown as (ajv: Ajv2020) => Ajv2020
withFormats(ajv)
const read = (said: Uint8Array) => JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(said))
const sampling = { temperature: fc.constantFrom(0, 0.7, 1.5), seed: fc.nat(1_000_000) }

function grammarOf(schema: unknown): string | undefined {
  try {
    return schemaGrammar(schema, origin)
  } catch (error) {
    if (error instanceof Failure && error.status === 400) return undefined
    throw error
  }
}

/** ajv follows a reference that leads to itself for ever, also where no value can be. */
function validatorOf(schema: object): ReturnType<typeof ajv.compile> | undefined {
  try {
    return ajv.compile(schema)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

test(`${cases} schemas: every finished answer of a model with random weights is JSON and validates`, async () => {
  let finished = 0
  let refused = 0
  await fc.assert(
    fc.asyncProperty(fc.record({ schema: schemas, ...sampling }), async ({ schema, ...how }) => {
      const grammar = grammarOf(schema)
      if (grammar === undefined) refused++
      fc.pre(grammar !== undefined)
      const said = await writer.write({ grammar, ...how })
      if (said === undefined) return
      finished++
      const value: unknown = read(said)
      const validate = validatorOf(schema)
      fc.pre(validate !== undefined)
      expect(validate(value), `${JSON.stringify(value)}: ${JSON.stringify(validate.errors)}`).toBe(true)
    }),
    // Half a minute on an idle machine. The search for a smaller counterexample ends with the time for the test.
    { numRuns: cases, interruptAfterTimeLimit: 220_000, markInterruptAsFailure: true },
  )
  expect(finished).toBeGreaterThanOrEqual(cases * 0.95)
  expect(refused).toBeLessThan(cases)
}, 240_000)

test('json_object: every finished answer is an object', async () => {
  const grammar = objectGrammar()
  let finished = 0
  for (let seed = 0; seed < 20; seed++) {
    const said = await writer.write({ grammar, temperature: 1, seed })
    if (said === undefined) continue
    finished++
    expect(read(said)).toBeTypeOf('object')
  }
  expect(finished).toBeGreaterThan(5)
})
