import { expect, test } from 'vitest'
import {
  readCount,
  readDuration,
  readExpiry,
  readList,
  readListen,
  readNumber,
  readScopes,
} from '../../../cli/terminal/options.ts'

const now = Date.UTC(2026, 0, 1)

test.each([
  ['90d', now + 90 * 86_400_000],
  ['12h', now + 12 * 3_600_000],
  ['2027-01-31', Date.UTC(2027, 0, 31)],
  ['2027-01-31T10:00:00Z', Date.UTC(2027, 0, 31, 10)],
  ['never', 'never'],
])('a token may expire at %s', (text, at) => {
  expect(readExpiry(text, now)).toBe(at)
})

test.each([
  ['soon', '90d, 12h, 2027-01-31 or never'],
  ['', '90d, 12h, 2027-01-31 or never'],
  ['90', '90d, 12h, 2027-01-31 or never'],
  ['2027-13-45', '90d, 12h, 2027-01-31 or never'],
  ['2025-12-31', 'is in the past'],
  ['0d', 'is in the past'],
  ['9999-12-31', 'is after the year 2286'],
  ['999999d', 'Write it as 90d'],
  ['2300-01-01', 'is after the year 2286'],
])('a token cannot expire at "%s"', (text, why) => {
  expect(() => readExpiry(text, now)).toThrow(why)
})

test.each([
  ['100ms', 100],
  ['1.5s', 1500],
  ['0s', 0],
  ['2h', 7_200_000],
])('%s is a duration', (text, ms) => {
  expect(readDuration(text)).toBe(ms)
})

test.each(['60', '', 'abc', '-1s', '1y'])('"%s" is not a duration', text => {
  expect(() => readDuration(text)).toThrow('Write a duration')
})

test('scopes are separated by commas, and duplicates are removed', () => {
  expect(readScopes('user:read, admin:write,user:read')).toEqual(['user:read', 'admin:write'])
})

test('an unknown scope is named, with the valid ones', () => {
  expect(() => readScopes('user:read,user:*')).toThrow(
    "There is no scope 'user:*'. The scopes are user:read, user:write, admin:read, admin:write.",
  )
})

test('an empty list is refused', () => {
  expect(() => readList(' , ')).toThrow('Name at least one')
})

test.each(['127.0.0.1:8787', '[::1]:80', ':0', 'localhost:65535'])('%s is an address to listen on', text => {
  expect(readListen(text)).toBe(text)
})

test.each(['8787', 'localhost', '127.0.0.1:65536', 'http://x:80', '::1:80'])('%s is no address to listen on', text => {
  expect(() => readListen(text)).toThrow('host:port')
})

test.each(['', '-1', '1.5', '11', '1e1', ' 1'])('"%s" is not a whole number from 0 to 10', text => {
  expect(() => readCount(0, 10)(text)).toThrow('from 0 to 10')
})

test.each(['', 'x', '2.1', '-0.1', 'NaN', 'Infinity'])('"%s" is not a number from 0 to 2', text => {
  expect(() => readNumber(0, 2)(text)).toThrow('from 0 to 2')
})

test('numbers in range are accepted', () => {
  expect([readCount(0, 10)('10'), readNumber(0, 2)('0.7')]).toEqual([10, 0.7])
})
