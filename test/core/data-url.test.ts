import { expect, test } from 'vitest'
import { bytesOfBase64, contentStart, isDataUrl } from '../../core/data-url.ts'

/** Bytes whose base64 has every kind of character: `+`, `/` and padding. */
const content = Buffer.from([0xfb, 0xef, 0xff, ...Array.from({ length: 98 }, (_, at) => at)])
const base64 = content.toString('base64')
const inLines = (length: number, end: string) => base64.replace(new RegExp(`.{${length}}`, 'g'), `$&${end}`)

test.each<[how: string, url: string]>([
  ['as usual', `data:image/png;base64,${base64}`],
  ['without a type', `data:;base64,${base64}`],
  ['in capitals', `DATA:image/PNG;BASE64,${base64}`],
  ['with a parameter', `data:image/jpeg;charset=utf-8;base64,${base64}`],
  ['with a quoted parameter that holds a comma', `data:image/png;name="a, b.png";base64,${base64}`],
  ['with the name of the file', `data:image/png;filename=Screenshot (1).png;base64,${base64}`],
  ['with spaces', `  data: image/png ; base64 , ${base64} \n`],
  ['in lines of 76 characters', `data:image/png;base64,${inLines(76, '\r\n')}`],
  ['in lines of 64 characters', `data:image/png;base64,\n${inLines(64, '\n')}`],
  ['without padding', `data:image/png;base64,${base64.replace(/=+$/, '')}`],
  ['in the alphabet of URLs', `data:image/png;base64,${content.toString('base64url')}`],
  ['percent-encoded', `data:image/png;base64,${encodeURIComponent(base64)}`],
])('a data: URL %s is read', (_how, url) => {
  expect(isDataUrl(url)).toBe(true)
  expect(Buffer.from(bytesOfBase64(url.slice(contentStart(url)))!)).toEqual(content)
})

test.each([
  'data:image/png,hello',
  'data:text/plain;charset=utf-8,a;base64,AAAA',
  'data: {"id": 1}',
  `data:${' '.repeat(2_000)};base64,AAAA`,
])('%.50s is not in base64', url => expect([isDataUrl(url), contentStart(url)]).toEqual([true, undefined]))

test.each(['http://a/data:', 'the data: a', 'date:', ''])('%o is no data: URL', text =>
  expect(isDataUrl(text)).toBe(false),
)

test.each(['', '   ', '=', '%%%%', 'iVBORw0KGgo=garbage', 'not base64!', '<html>'])('%o is not base64', text =>
  expect(bytesOfBase64(text)).toBeUndefined(),
)

test('bytes have their own memory, which can be transferred to a thread', () => {
  expect(bytesOfBase64('AAAA')!.buffer.byteLength).toBe(3)
})
