import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Subject } from './conformance.ts'

/** Sessions of the web console. */
export function sessionRules({ store: { sessions } }: Subject): void {
  const session = (more: object = {}) => ({
    digest: randomBytes(32),
    tokenId: 'tok_test',
    createdAt: 5,
    expiresAt: 100,
    ...more,
  })

  test('a session is found by its digest until it is removed', async () => {
    const added = session()
    await sessions.add(added)
    expect(sessions.find(added.digest)).toEqual(added)
    expect(sessions.find(randomBytes(32))).toBeUndefined()
    await sessions.remove(added.digest)
    expect(sessions.find(added.digest)).toBeUndefined()
  })

  test('the end of a session is moved to a later time only', async () => {
    const [one, other] = [session(), session()]
    await sessions.add(one)
    await sessions.add(other)
    await sessions.extend([
      { digest: one.digest, expiresAt: 200 },
      { digest: other.digest, expiresAt: 50 },
      { digest: randomBytes(32), expiresAt: 300 },
    ])
    expect([one, other].map(({ digest }) => sessions.find(digest)!.expiresAt)).toEqual([200, 100])
  })

  test('beginning a session removes expired ones and the oldest of its token', async () => {
    const expired = session({ expiresAt: 9, tokenId: 'tok_other' })
    await sessions.add(expired)
    const all = Array.from({ length: 51 }, (_, at) => session({ createdAt: 10 + at, tokenId: 'tok_many' }))
    for (const one of all) await sessions.add(one)
    expect(sessions.find(expired.digest)).toBeUndefined()
    expect(all.map(({ digest }) => sessions.find(digest) !== undefined)).toEqual(all.map((_, at) => at > 0))
  })
}
