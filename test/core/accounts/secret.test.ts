import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  digestMatches,
  digestOf,
  hintOf,
  mintSecret,
  parseSecret,
  secretPattern,
} from '../../../core/accounts/secret.ts'

test('a secret is well formed, found by the leak pattern, and carries its public id', () => {
  const { secret, publicId } = mintSecret()
  expect(secret).toMatch(/^sk-infer-[0-9A-Za-z]{12}-[0-9A-Za-z]{49}$/)
  expect(parseSecret(secret)).toBe(publicId)
  expect([...`key = "${secret}",`.matchAll(secretPattern)].map(([found]) => found)).toEqual([secret])
  expect(hintOf(secret)).toBe(`…${secret.slice(-4)}`)
})

test('one wrong character anywhere is detected without a query', () => {
  const { secret } = mintSecret()
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: secret.length - 1 }),
      fc.constantFrom('0', 'A', 'z', '-', '_', ' ', 'é'),
      (at, character) => {
        const changed = secret.slice(0, at) + character + secret.slice(at + 1)
        return changed === secret || parseSecret(changed) === undefined
      },
    ),
  )
})

test.each([
  ['nothing', ''],
  ['another prefix', `sk-other-${'a'.repeat(62)}`],
  ['too long', `${mintSecret().secret}x`],
  ['too short', mintSecret().secret.slice(1)],
])('%s is not a secret', (_, text) => expect(parseSecret(text)).toBeUndefined())

test('a digest matches its secret under its pepper only', () => {
  const pepper = createSecretKey(Buffer.alloc(32, 1))
  const { secret } = mintSecret()
  const stored = digestOf(pepper, secret)
  expect(digestMatches(stored, digestOf(pepper, secret))).toBe(true)
  expect(digestMatches(stored, digestOf(pepper, mintSecret().secret))).toBe(false)
  expect(digestMatches(stored, digestOf(createSecretKey(Buffer.alloc(32, 2)), secret))).toBe(false)
  expect(digestMatches(undefined, digestOf(pepper, secret))).toBe(false)
})
