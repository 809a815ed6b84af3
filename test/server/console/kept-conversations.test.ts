import { beforeEach, expect, test, vi } from 'vitest'
import {
  earlierThan,
  openConversation,
  openEarlier,
} from '../../../server/console/app/pages/playground/chat/kept-conversations.ts'

/** A storage as browsers have it, whose values have room for so many characters. */
function storageOf(room: number): Storage {
  const values: Record<string, string> = {}
  const method = (value: unknown) => ({ value, enumerable: false })
  return Object.defineProperties(values, {
    getItem: method((key: string) => values[key] ?? null),
    removeItem: method((key: string) => delete values[key]),
    setItem: method((key: string, value: string) => {
      const others = Object.entries(values).filter(([other]) => other !== key)
      if (others.reduce((sum, [, text]) => sum + text.length, value.length) > room)
        throw new Error('QuotaExceededError')
      values[key] = value
    }),
  }) as unknown as Storage
}

const said = (text: string) => ({ system: '', messages: [{ role: 'user' as const, text }], compared: [] })
const long = (begin: string, length: number) => said(begin.padEnd(length, '.'))
const inNewTab = (conversation: ReturnType<typeof said>) => {
  vi.stubGlobal('sessionStorage', storageOf(5_000_000))
  const opened = openConversation('t', '', conversation)
  opened.keep(conversation)
  return opened
}
const lengthOfAll = () => Object.values(localStorage).reduce((sum: number, text: string) => sum + text.length, 0)

beforeEach(() => {
  vi.stubGlobal('localStorage', storageOf(5_000_000))
  vi.stubGlobal('sessionStorage', storageOf(5_000_000))
  let now = 1
  vi.spyOn(Date, 'now').mockImplementation(() => now++)
  return () => vi.unstubAllGlobals()
})

test('all conversations together leave room for drafts; the oldest goes first', () => {
  const opened = ['a', 'b', 'c', 'd', 'e'].map(name => inNewTab(long(name, 900_000)))
  expect(lengthOfAll()).toBeLessThan(3_000_000)
  expect(earlierThan('t', opened.at(-1)!.key).map(({ title }) => title[0])).toEqual(['d', 'c'])
})

test('a full storage drops the oldest other conversation, and a failed write is no other tab', () => {
  vi.stubGlobal('localStorage', storageOf(1_000))
  inNewTab(long('a', 600))
  const second = inNewTab(long('b', 600))
  expect(earlierThan('t', '').map(({ title }) => title[0])).toEqual(['b'])
  const { key } = second
  second.keep(long('b', 2_000))
  second.keep(long('b', 500))
  expect(second.key).toBe(key)
  expect(Object.keys(localStorage)).toEqual([key])
})

test('an earlier conversation stays the one of its tab when the one before is kept once more', () => {
  const first = inNewTab(said('first'))
  const second = inNewTab(said('second'))
  openEarlier('t', first.key)
  second.keep(said('second, to its end'))
  expect(openConversation('t', '').key).toBe(first.key)
})

test('a full storage of the tab does not keep a conversation from being kept', () => {
  vi.stubGlobal('sessionStorage', storageOf(0))
  const opened = openConversation('t', '', said('hello'))
  opened.keep(said('hello'))
  expect(earlierThan('t', '').map(({ title }) => title)).toEqual(['hello'])
})
