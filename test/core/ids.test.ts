import { expect, test } from 'vitest'
import { isId, newId, ulid } from '../../core/ids.ts'

test('ids ascend, within one millisecond too', () => {
  const now = Date.UTC(2026, 0, 1)
  const ids = Array.from({ length: 2_000 }, (_, at) => ulid(now + Math.floor(at / 1_000)))
  expect(ids).toEqual([...new Set(ids)].sort())
})

test('the next millisecond begins at a random value', () => {
  const beginnings = Array.from({ length: 100 }, (_, at) => ulid(Date.UTC(2026, 0, 2) + at).slice(10))
  expect(new Set(beginnings).size).toBe(100)
  expect(beginnings).not.toEqual([...beginnings].sort())
})

test('an id contains its kind and its time of creation', () => {
  expect(isId(newId('job'))).toBe(true)
  expect(ulid(0)).toMatch(/^0{10}[0-9A-HJKMNP-TV-Z]{16}$/)
  expect(ulid(32)).toMatch(/^0{8}10[0-9A-HJKMNP-TV-Z]{16}$/)
})
