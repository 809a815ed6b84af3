import { expect, test } from 'vitest'
import { codeMs, openSessions, sessionCredential, sessionIn, sessionMs } from '../../../core/accounts/sessions.ts'
import { openLog } from '../../../core/log.ts'
import type { SessionRecord, Store } from '../../../core/store/store.ts'

/** Sessions over rows in memory, with a clock that the test moves. */
function openWithClock() {
  const rows = new Map<string, SessionRecord>()
  const key = (digest: Uint8Array) => Buffer.from(digest).toString('hex')
  const clock = { now: 1_000_000 }
  const store: Pick<Store, 'sessions'> = {
    sessions: {
      add: async session => void rows.set(key(session.digest), session),
      find: digest => rows.get(key(digest)),
      extend: async these => {
        for (const { digest, expiresAt } of these) rows.set(key(digest), { ...rows.get(key(digest))!, expiresAt })
      },
      remove: async digest => void rows.delete(key(digest)),
    },
  }
  const log = openLog('error', () => {})
  return { sessions: openSessions({ store: store as Store, log, now: () => clock.now }), clock, rows }
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

test('codes that nobody uses are bounded', () => {
  const { sessions } = openWithClock()
  const first = sessions.createCode('tok_1')
  for (let at = 0; at < 1_000; at++) sessions.createCode('tok_1')
  expect(() => sessions.useCode(first.code)).toThrow()
})

test('only a credential of the server itself is a session', () => {
  expect(sessionIn(sessionCredential('abc'))).toBe('abc')
  for (const sent of ['abc', 'session:abc', ' session:abc']) expect(sessionIn(sent)).toBeUndefined()
})
