import { expect, test } from 'vitest'
import { codeMs, openSessions, sessionCredential, sessionIn, sessionMs } from '../../../core/accounts/sessions.ts'
import { openLog } from '../../../core/log.ts'
import type { SessionRecord, Store } from '../../../core/store/store.ts'

/** Sessions over rows in memory, with a clock that the test moves. */
function openWithClock() {
  const rows = new Map<string, SessionRecord>()
  const key = (digest: Uint8Array) => Buffer.from(digest).toString('hex')
  const clock = { now: 1_000_000 }
  const written = { removals: 0 }
  const store: Pick<Store, 'sessions'> = {
    sessions: {
      add: async session => void rows.set(key(session.digest), session),
      find: digest => rows.get(key(digest)),
      extend: async these => {
        for (const { digest, expiresAt } of these) rows.set(key(digest), { ...rows.get(key(digest))!, expiresAt })
      },
      remove: async digest => {
        rows.delete(key(digest))
        written.removals++
      },
    },
  }
  const log = openLog('error', () => {})
  return { sessions: openSessions({ store: store as Store, log, now: () => clock.now }), clock, rows, written }
}

test('a session ends 12 hours after its last request', async () => {
  const { sessions, clock } = openWithClock()
  const { id } = await sessions.begin('tok_1')
  clock.now += sessionMs - 1
  expect(sessions.use(id)?.tokenId).toBe('tok_1')
  clock.now += sessionMs - 1
  expect(sessions.use(id)?.expiresAt).toBe(clock.now + sessionMs)
  clock.now += sessionMs
  expect(sessions.use(id)).toBeUndefined()
})

test('ending a session that does not exist writes nothing', async () => {
  const { sessions, rows, written } = openWithClock()
  const { id } = await sessions.begin('tok_1')
  await sessions.end('guess')
  expect([rows.size, written.removals]).toEqual([1, 0])
  await sessions.end(id)
  expect([rows.size, written.removals]).toEqual([0, 1])
})

test('its end is stored, so that a restart does not shorten it', async () => {
  const { sessions, clock, rows } = openWithClock()
  const { id } = await sessions.begin('tok_1')
  clock.now += sessionMs / 2
  sessions.use(id)
  await sessions.flush()
  expect([...rows.values()].map(row => row.expiresAt)).toEqual([clock.now + sessionMs])
})

test('a row has neither the id nor anything that leads to it', async () => {
  const { sessions, rows } = openWithClock()
  const { id } = await sessions.begin('tok_1')
  const [row] = [...rows.values()]
  expect(row!.digest.byteLength).toBe(32)
  expect(Buffer.from(row!.digest).includes(Buffer.from(id, 'base64url'))).toBe(false)
})

test('a code works once and for two minutes', () => {
  const { sessions, clock } = openWithClock()
  const { code } = sessions.createCode('tok_1')
  const late = sessions.createCode('tok_2')
  clock.now += codeMs - 1
  expect(sessions.useCode(code)).toBe('tok_1')
  expect(() => sessions.useCode(code)).toThrow('used before')
  clock.now += 1
  expect(() => sessions.useCode(late.code)).toThrow('older than two minutes')
})

test('a token has ten codes at most, and ends no code of another token', () => {
  const { sessions } = openWithClock()
  const other = sessions.createCode('tok_other')
  const all = Array.from({ length: 11 }, () => sessions.createCode('tok_1').code)
  expect(() => sessions.useCode(all[0]!)).toThrow('used before')
  expect(all.slice(1).map(code => sessions.useCode(code))).toEqual(Array.from({ length: 10 }, () => 'tok_1'))
  expect(sessions.useCode(other.code)).toBe('tok_other')
})

test('only a credential of the server itself is a session', () => {
  expect(sessionIn(sessionCredential('abc'))).toBe('abc')
  for (const sent of ['abc', 'session:abc', ' session:abc']) expect(sessionIn(sent)).toBeUndefined()
})
