import { beforeEach, expect, test, vi } from 'vitest'
import { browserStore, chained, takeOver } from '../../../server/console/app/pages/chat/store/browser-store.ts'
import { isPreset } from '../../../server/console/app/pages/chat/store/stored.ts'

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

const said = (...texts: string[]) => {
  const messages = chained(texts.map(text => ({ role: 'user' as const, text })))
  return { title: '', folder: null, system: '', parameters: {}, messages, current: messages.at(-1)?.id ?? null }
}
const long = (begin: string, length: number) => said(begin.padEnd(length, '.'))
const lengthOfAll = () => Object.values(localStorage).reduce((sum: number, text: string) => sum + text.length, 0)
const titles = () =>
  browserStore('t')
    .list('')
    .map(({ title }) => title[0])

beforeEach(() => {
  vi.stubGlobal('localStorage', storageOf(5_000_000))
  let now = 1
  vi.spyOn(Date, 'now').mockImplementation(() => now++)
  return () => vi.unstubAllGlobals()
})

test('all conversations together leave room for drafts; the oldest goes first', async () => {
  const store = browserStore('t')
  for (const name of ['a', 'b', 'c', 'd', 'e']) await store.create(long(name, 900_000))
  expect(lengthOfAll()).toBeLessThan(3_000_000)
  expect(titles()).toEqual(['e', 'd', 'c'])
})

test('a full browser drops the oldest other conversation, and says when one has no room at all', async () => {
  vi.stubGlobal('localStorage', storageOf(1_500))
  const store = browserStore('t')
  await store.create(long('a', 600))
  const { id } = await store.create(long('b', 600))
  expect(titles()).toEqual(['b'])
  await expect(store.update(id, { messages: long('c', 2_000).messages })).rejects.toThrow('no room')
  await expect(store.create(long('d', 1_100_000))).rejects.toThrow('too long')
  expect(titles()).toEqual(['b'])
})

test('a preset is in no list of conversations, and makes no room for them', async () => {
  const store = browserStore('t')
  const preset = { ...said(), title: 'Brief', system: 'Be brief.' }
  const { id } = await store.create(preset)
  for (const name of ['a', 'b', 'c', 'd']) await store.create(long(name, 900_000))
  expect(titles()).toEqual(['d', 'c', 'b'])
  expect(store.presets()).toEqual([{ id, name: 'Brief' }])
  expect(await store.read(id)).toMatchObject({ system: 'Be brief.' })
})

test.each([
  ['Presets', 0, true],
  // People and scripts may have a folder of this name, and conversations that have not begun.
  ['Presets', 2, false],
  [null, 0, false],
])('a conversation of the server in the folder %j with %d messages', (folder, message_count, expected) => {
  expect(isPreset({ folder, message_count })).toBe(expected)
})

test('what two tabs add is kept, and a conversation is found by its words', async () => {
  const store = browserStore('t')
  const begun = said('Hello')
  const { id } = await store.create(begun)
  const [first] = begun.messages
  const more = (text: string) => chained([{ role: 'assistant', text }]).map(one => ({ ...one, parent: first!.id }))
  await store.update(id, { messages: more('One tab') })
  await store.update(id, { messages: more('Another tab') })
  expect((await store.read(id)).messages.map(({ text }) => text)).toEqual(['Hello', 'One tab', 'Another tab'])
  expect(store.list('one TAB')).toMatchObject([{ id, title: 'Hello', place: 'browser' }])
  expect(store.list('two tabs')).toEqual([])
  expect(browserStore('other').list('')).toEqual([])
  await store.remove(id)
  await expect(store.read(id)).rejects.toThrow('no such conversation')
})

test('conversations of the playground are taken over, and what it keeps beside them stays', async () => {
  const question = { role: 'user', text: 'A question', images: ['file-1'] }
  const old = {
    system: 'Be brief.',
    messages: [question, { role: 'assistant', text: 'One' }],
    compared: [question],
    at: 5,
  }
  localStorage.setItem('infer.person.playground.t.1', JSON.stringify(old))
  localStorage.setItem('infer.person.playground.t.2', '{"broken')
  localStorage.setItem('infer.person.playground.u.1', JSON.stringify(old))
  takeOver('t')
  const [listed] = browserStore('t').list('')
  expect(listed).toMatchObject({ title: 'A question', at: 0.005 })
  expect((await browserStore('t').read(listed!.id)).messages).toMatchObject([
    { text: 'A question', files: [{ id: 'file-1', kind: 'image', name: '' }] },
    { text: 'One' },
    { text: 'A question', files: [{ id: 'file-1', kind: 'image', name: '' }] },
  ])
  expect(Object.keys(localStorage).filter(key => key.includes('playground'))).toEqual([
    'infer.person.playground.t.2',
    'infer.person.playground.u.1',
  ])
})
