import { expect, test } from 'vitest'
import { openSecretFinder } from '../../../cli/tokens/scan.ts'
import { mintSecret } from '../../../core/accounts/secret.ts'

const { secret } = mintSecret()
const other = mintSecret().secret
const wrongChecksum = secret.slice(0, -1) + (secret.endsWith('0') ? '1' : '0')

const texts: [rule: string, text: string, found: [secret: string, line: number][]][] = [
  ['a secret alone', secret, [[secret, 1]]],
  ['its line is counted from 1', `a\nb\n${secret}\n`, [[secret, 3]]],
  [
    'several secrets, also in one line',
    `${secret} ${other}\n${secret}`,
    [
      [secret, 1],
      [other, 1],
      [secret, 2],
    ],
  ],
  [
    'between quotes, commas and zero bytes',
    `"k":"${secret}",\u0000${other}\u0000`,
    [
      [secret, 1],
      [other, 1],
    ],
  ],
  ['directly after a word', `token${secret}`, [[secret, 1]]],
  ['a secret with a wrong checksum is not reported', wrongChecksum, []],
  ['the beginning of a secret is not reported', `${secret.slice(0, 60)}\n`, []],
  ['a secret with a newline in it is not reported', `${secret.slice(0, 30)}\n${secret.slice(30)}`, []],
  [
    'a fake beginning does not hide the real secret after it',
    `sk-infer-${'a'.repeat(12)}-${'b'.repeat(47)}${secret}`,
    [[secret, 1]],
  ],
  ['prefixes of other tools are not reported', 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789', []],
]

const find = (bytes: Buffer, size: number) => {
  const finder = openSecretFinder()
  const found: [string, number][] = []
  for (let at = 0; at < bytes.length; at += size)
    for (const { secret, line } of finder.feed(bytes.subarray(at, at + size))) found.push([secret, line])
  return found
}

test.each(texts)('%s', (_, text, found) => {
  const bytes = Buffer.from(text, 'latin1')
  for (const size of [bytes.length, 1, 7, 70, 71, 72]) expect(find(bytes, size), `pieces of ${size}`).toEqual(found)
})

test('only the last four characters are in the hint', () => {
  expect(openSecretFinder().feed(Buffer.from(secret))[0]!.hint).toBe(`…${secret.slice(-4)}`)
})

test('a line of many megabytes is searched in pieces, and the text around a secret does not matter', () => {
  const long = Buffer.alloc(8 << 20, 'x')
  Buffer.from(secret).copy(long, (4 << 20) - 30)
  expect(find(long, 1 << 20)).toEqual([[secret, 1]])
})

test('binary files are searched like any others', () => {
  const bytes = Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 37) % 256))
  const newlines = bytes.subarray(0, 1000).filter(byte => byte === 10).length
  Buffer.from(secret).copy(bytes, 1000)
  expect(find(bytes, 512)).toEqual([[secret, 1 + newlines]])
})
