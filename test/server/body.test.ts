import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { openBodyBudget } from '../../server/body.ts'

const request = (length?: number) =>
  ({ headers: length === undefined ? {} : { 'content-length': String(length) } }) as IncomingMessage

test('bodies are held up to the bound, and room comes back with each that goes', () => {
  const budget = openBodyBudget(1_000)
  const first = budget.hold(request(300))
  const second = budget.hold(request(200))
  expect(() => budget.hold(request(1))).toThrow(/hold all the memory/)
  second()
  second()
  expect(() => budget.hold(request(201))).toThrow(/hold all the memory/)
  expect(() => budget.hold(request(200))).not.toThrow()
  first()
})

test('one body alone is always taken, whatever its size; its own limit is elsewhere', () => {
  expect(() => openBodyBudget(10).hold(request(1_000))).not.toThrow()
})

test('a body of unannounced length counts as a large one', () => {
  const budget = openBodyBudget(3 << 20)
  budget.hold(request())
  expect(() => budget.hold(request())).toThrow(/hold all the memory/)
})
