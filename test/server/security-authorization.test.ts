import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAccounts } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { mintSecret, parseSecret } from '../../core/accounts/secret.ts'
import { Failure } from '../../core/failure.ts'
import { openLog } from '../../core/log.ts'
import type { Store } from '../../core/store/store.ts'
import { credentialOf } from '../../server/http/access/auth.ts'
import { startApp, type TestApp } from '../_app.ts'

/** T-SEC-3: no Authorization header but that of a token is accepted, answered by an internal error, or costs a query. */

let app: TestApp
beforeAll(async () => void (app = await startApp()))
afterAll(() => app[Symbol.asyncDispose]())

/** A repeatable generator of whole numbers below `count`. */
function seeded(seed: number): (count: number) => number {
  let state = seed
  return count => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * count)
  }
}

const headers = ['authorization', 'x-api-key', 'api-key'] as const
const schemes = ['Bearer ', 'bearer ', 'Key ', 'BEARER\t', 'Bearer', 'Basic ', 'Token ', 'Bearer Bearer ', ' ', '']
const injections = [
  "' OR 1=1 --",
  '";DROP TABLE tokens;--',
  '%',
  '_',
  '%00',
  '../../master-key',
  '${jndi:ldap://x}',
  '{"$ne":null}',
  '\u00ff\u00fe',
  'undefined',
  '__proto__',
  'constructor',
]
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Values of a header as their bytes in Latin-1: no line breaks and controls, which HTTP itself refuses. */
function mutations(secret: string, count: number): string[] {
  const below = seeded(20_261_123)
  const any = <T>(from: ArrayLike<T>): T => from[below(from.length)]!
  const byte = () => String.fromCharCode(below(2) === 0 ? 33 + below(94) : 160 + below(96))
  const change = (text: string): string => {
    const at = below(text.length + 1)
    switch (below(9)) {
      case 0:
        return text.slice(0, at) + byte() + text.slice(at + 1)
      case 1:
        return text.slice(0, at) + text.slice(at + 1 + below(4))
      case 2:
        return text.slice(0, at) + any(base62) + text.slice(at)
      case 3:
        return text.slice(0, at)
      case 4:
        return text + text.slice(0, at)
      case 5:
        return text.slice(0, at) + any(base62) + text.slice(at + 1)
      case 6:
        return text.slice(0, at) + any(injections) + text.slice(at)
      case 7:
        return text.toUpperCase()
      default:
        return text + 'A'.repeat(below(6_000))
    }
  }
  return Array.from({ length: count }, (_, which) => {
    // Unknown, but well formed to the last character.
    if (which % 50 === 0) return any(schemes) + mintSecret().secret
    let value = any(schemes) + secret
    for (let times = 1 + below(3); times > 0; times--) value = change(value)
    return value
  })
}

const isOwn = (name: string, value: string, secret: string): boolean =>
  credentialOf({ [name]: value.trim() })?.trim() === secret

/** Sends the header as bytes, on a connection of its own. Resolves with the status. */
function statusOf(name: string, value: string): Promise<number> {
  const { hostname, port } = new URL(app.url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', part => void (text += part))
    socket.on('error', reject)
    socket.on('close', () => resolve(Number(text.split(' ', 2)[1])))
    const head = `GET /api/me HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: close\r\n${name}: ${value}\r\n\r\n`
    // A client that closes its side at once may leave before a gateway process has passed its request on.
    socket.write(Buffer.from(head, 'latin1'))
  })
}

test('T-SEC-3: 3,000 mutated headers of a token: each is refused, and none breaks anything', async () => {
  const values = mutations(app.secret, 3_000)
  const seen = new Map<number, number>()
  for (const [at, value] of values.entries()) {
    const name = headers[at % headers.length]!
    if (isOwn(name, value, app.secret)) continue
    const status = await statusOf(name, value)
    expect([401, 403, 429], `${name}: ${value.slice(0, 200)}`).toContain(status)
    seen.set(status, (seen.get(status) ?? 0) + 1)
  }
  expect(seen.get(401)).toBeGreaterThan(10)
  expect([...seen.values()].reduce((sum, each) => sum + each)).toBeGreaterThan(2_900)
  expect(app.errors).toEqual([])
  // Guessing does not lock out the token itself, which is still the only one.
  expect((await app.fetch('/api/me')).status).toBe(200)
})

test('T-SEC-3: 50,000 malformed secrets cost no query, and a well-formed one costs one', () => {
  let queries = 0
  const store = { tokens: { verify: () => void queries++ } } as unknown as Store
  const accounts = openAccounts({ store, keys: openStoredKeys(app.dataDir), log: openLog('error') })
  const refusalOf = (secret: string): string => {
    try {
      accounts.authenticate(secret)
      return 'accepted'
    } catch (thrown) {
      return Failure.from(thrown).code
    }
  }
  for (const value of mutations(app.secret, 50_000)) {
    const secret = credentialOf({ authorization: value.trim() }) ?? value
    const before = queries
    expect(['invalid_api_key', 'missing_api_key']).toContain(refusalOf(secret))
    expect(queries - before).toBe(parseSecret(secret) === undefined ? 0 : 1)
  }
  expect(queries).toBeGreaterThan(100)
})
