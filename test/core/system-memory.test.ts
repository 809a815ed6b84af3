import { expect, test } from 'vitest'
import { decodedText, encodedText, systemBuffer } from '../../core/system-memory.ts'

const megabyte = 1 << 20

test.each([
  ['a small text', 'é€🚀'],
  ['characters across every border of a piece', 'a€🚀é'.repeat(megabyte / 4)],
  ['one byte a character', 'x'.repeat(3 * megabyte + 1)],
])('%s is encoded and decoded', (_, text) => {
  const bytes = Buffer.from(text)
  expect(bytes.equals(encodedText(text))).toBe(true)
  expect(decodedText(bytes) === text).toBe(true)
})

test('what is not UTF-8 is decoded as node does it', () => {
  for (const end of [[0xe2], [0xff, 0x80], [0xf0, 0x9f, 0x9a]]) {
    const bytes = Buffer.concat([Buffer.alloc(megabyte, 0xe2), Buffer.from(end)])
    expect(decodedText(bytes) === bytes.toString('utf8')).toBe(true)
  }
})

test('many megabytes are memory of the system, which is not kept when they are garbage', () => {
  expect(encodedText('x'.repeat(2 * megabyte)).buffer.resizable).toBe(true)
  expect(systemBuffer(5)).toEqual(Buffer.alloc(5))
})
