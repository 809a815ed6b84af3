import { createSecretKey, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { expiryOf, longestLifetimeMs, openFileUrls } from '../../../core/files/address.ts'
import { newId } from '../../../core/ids.ts'

const addresses = openFileUrls(createSecretKey(randomBytes(32)))
const day = 86_400_000
const now = Date.UTC(2026, 10, 21, 12, 34, 56)
const origin = 'https://infer.example'
const file = { id: newId('file'), name: 'a cat’s video.mp4' }

function partsOf(address: string) {
  const url = new URL(address)
  const [, root, id, name] = url.pathname.split('/')
  return {
    root: root!,
    id: id!,
    name: decodeURIComponent(name!),
    query: url.searchParams,
    exp: url.searchParams.get('exp') ?? '',
    sig: url.searchParams.get('sig') ?? '',
  }
}

test('an address reads /files/<id>/<name> with an expiry and a signature, and is parsed back', () => {
  const parts = partsOf(addresses.read(file, origin, day, now))
  expect(parts).toMatchObject({ root: 'files', id: file.id, name: file.name })
  expect(parts.sig).toMatch(/^[\w-]{43}$/)
  expect(addresses.mayRead(parts.id, parts.exp, parts.sig, now)).toBe(true)
})

test('any changed character is refused', () => {
  const { id, exp, sig } = partsOf(addresses.read(file, origin, day, now))
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ '
  const wrong: [string, string, string][] = []
  const changed = (text: string, at: number, letter: string) => text.slice(0, at) + letter + text.slice(at + 1)
  for (let at = 0; at < sig.length; at++)
    for (const letter of letters) if (letter !== sig[at]) wrong.push([id, exp, changed(sig, at, letter)])
  for (let at = 0; at < exp.length; at++)
    for (const letter of '0123456789') if (letter !== exp[at]) wrong.push([id, changed(exp, at, letter), sig])
  for (let at = 5; at < id.length; at++) wrong.push([changed(id, at, id[at] === 'A' ? 'B' : 'A'), exp, sig])
  wrong.push(
    [id, exp, ''],
    [id, exp, `${sig}A`],
    [id, exp, `${sig}=`],
    [id, exp, sig.slice(0, -1)],
    [id, exp, ` ${sig}`],
  )
  wrong.push([id, `0${exp}`, sig], [id, `+${exp}`, sig], [id, `${exp}.0`, sig], [id, `${exp}\n`, sig], [id, '', sig])
  wrong.push([id, '1e10', sig], [id, 'NaN', sig], [id, '-1', sig], [id.toLowerCase(), exp, sig], [`${id}/..`, exp, sig])
  expect(wrong.length).toBeGreaterThan(2_900)
  expect(wrong.filter(parts => addresses.mayRead(...parts, now))).toEqual([])
})

test.each([
  ['a moment before its end', 0, true],
  ['at its end', 1, false],
  ['long after', 1e9, false],
])('%s it is %s', (_, after, valid) => {
  const { id, exp, sig } = partsOf(addresses.read(file, origin, day, now))
  expect(addresses.mayRead(id, exp, sig, Number(exp) * 1000 - 1 + after)).toBe(valid)
})

test('an address of another installation is invalid', () => {
  const { id, exp, sig } = partsOf(openFileUrls(createSecretKey(randomBytes(32))).read(file, origin, day, now))
  expect(addresses.mayRead(id, exp, sig, now)).toBe(false)
})

test.each([
  ['a day', day, 23 * 3_600_000, day],
  ['a second', 1_000, 1, 2_000],
  [
    'a month, which is more than there is',
    30 * day,
    longestLifetimeMs - longestLifetimeMs / 24 - 1_000,
    longestLifetimeMs,
  ],
])(
  'an address for %s lasts that long, less the part by which it is rounded to stay the same for a while',
  (_, lifetime, least, most) => {
    for (let at = now; at < now + 2 * day; at += 977_777) {
      const lasts = expiryOf(at, lifetime) * 1000 - at
      expect(lasts).toBeGreaterThanOrEqual(least - 1_000)
      expect(lasts).toBeGreaterThan(0)
      expect(lasts).toBeLessThanOrEqual(most)
    }
  },
)

test('two requests in a short time get the same address', () => {
  const hour = Math.ceil(now / 3_600_000) * 3_600_000
  const all = new Set(
    Array.from({ length: 60 }, (_, minute) => addresses.read(file, origin, day, hour + minute * 60_000)),
  )
  expect(all.size).toBe(1)
})

const upload = {
  id: newId('file'),
  organizationId: newId('org'),
  name: 'ein Bild & mehr?.png',
  contentType: 'image/png',
  keptMs: 3_600_000,
}

test('an upload address is parsed back into its parts', () => {
  for (const one of [upload, { ...upload, keptMs: null }, { ...upload, name: '"],["' }]) {
    const { id, name, query } = partsOf(addresses.upload(one, origin, day, now))
    expect(addresses.mayUpload(id, name, query, now)).toEqual(one)
    expect(addresses.mayUpload(id, name, query, now + 8 * day)).toBeUndefined()
  }
})

test.each(['org', 'type', 'kept', 'exp', 'sig'])('an upload address with a changed %s is refused', field => {
  const { id, name, query } = partsOf(addresses.upload(upload, origin, day, now))
  const before = query.get(field)!
  for (const value of ['', `${before}0`, before.slice(1), newId('org'), 'text/html', '0', '99999999999']) {
    const changed = new URLSearchParams(query)
    changed.set(field, value)
    expect(addresses.mayUpload(id, name, changed, now), value).toBeUndefined()
  }
})

test('an upload address is for its file and its name, and neither kind of address replaces the other', () => {
  const { id, name, query, exp, sig } = partsOf(addresses.upload(upload, origin, day, now))
  expect(addresses.mayUpload(newId('file'), name, query, now)).toBeUndefined()
  expect(addresses.mayUpload(id, 'other.png', query, now)).toBeUndefined()
  expect(addresses.mayRead(id, exp, sig, now)).toBe(false)
  const read = partsOf(addresses.read(upload, origin, day, now))
  expect(addresses.mayUpload(read.id, read.name, read.query, now)).toBeUndefined()
})
