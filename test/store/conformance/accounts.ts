import { describe, expect, test } from 'vitest'
import type { Subject } from './conformance.ts'
import { createOrganization, newToken, organizationId } from './records.ts'

const unlimited = {
  requestsPerMinute: null,
  jobsPerMinute: null,
  concurrentRequests: null,
  pendingJobs: null,
  storedBytes: null,
  uploadsPerDay: null,
  monthlySpendLimit: null,
  localOnly: null,
}
const noLimits = {
  requestsPerMinute: null,
  jobsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  monthlySpendLimit: null,
  allowedHours: null,
  localOnly: false,
}

/** Organizations and tokens. */
export function accountRules({ store }: Subject): void {
  describe('organizations', () => {
    test('a created one is found and listed, and is active', async () => {
      const made = await createOrganization(store, 'org_listed')
      expect(made).toMatchObject({ id: 'org_listed', status: 'active', plan: 'pro', jobsPerMinute: 0 })
      expect(await store.organizations.find('org_listed')).toEqual(made)
      expect(await store.organizations.list()).toContainEqual(made)
      expect(await store.organizations.find('org_absent')).toBeUndefined()
    })

    test('an id and a name are unique', async () => {
      await createOrganization(store, 'org_twice')
      await expect(createOrganization(store, 'org_twice')).rejects.toMatchObject({ code: 'conflict' })
      await expect(
        store.organizations.create({
          id: 'org_other',
          name: 'name of org_twice',
          plan: 'free',
          requestsPerMinute: null,
          jobsPerMinute: null,
          createdAt: 1,
        }),
      ).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining("'name of org_twice'") })
    })
  })

  describe('tokens', () => {
    test('a created one is verified with everything that authentication needs', async () => {
      const token = newToken({ models: ['qwen/*'], expiresAt: 5, scopes: ['admin:read'], createdBy: 'tok_parent' })
      const record = await store.tokens.create(token)
      expect(record).toMatchObject({ id: token.id, status: 'expired', models: ['qwen/*'], createdBy: 'tok_parent' })
      expect(record).not.toHaveProperty('digest')
      expect(store.tokens.verify(token.publicId)).toEqual({
        id: token.id,
        organizationId,
        organizationName: 'name of org_test',
        organizationStatus: 'active',
        plan: 'pro',
        organizationLimits: { ...unlimited, jobsPerMinute: 0 },
        region: null,
        callStorage: 'metadata',
        limits: noLimits,
        userId: null,
        originId: token.id,
        parentLimits: [],
        name: 'a token',
        scopes: ['admin:read'],
        digest: Buffer.alloc(32, 7),
        hint: '…abcd',
        models: ['qwen/*'],
        status: 'active',
        createdAt: token.createdAt,
        expiresAt: 5,
        lastUsedAt: null,
      })
      expect(store.tokens.verify('absent000000')).toBeUndefined()
    })

    test('by its id it is verified with the same facts, whatever has become of it', async () => {
      const token = newToken({ scopes: ['user:read'], models: ['qwen/*'] })
      await store.tokens.create(token)
      const same = () => {
        const found = store.tokens.verifyId(token.id)
        expect(found).toEqual(store.tokens.verify(token.publicId))
        return found
      }
      expect(same()).toMatchObject({ id: token.id, organizationId, status: 'active', models: ['qwen/*'] })
      await store.tokens.update(organizationId, token.id, { name: 'renamed', status: 'disabled' })
      expect(same()).toMatchObject({ name: 'renamed', status: 'disabled' })
      await store.tokens.revoke(organizationId, token.id, 1)
      expect(same()).toMatchObject({ status: 'revoked' })
      // An id is no public part of a secret, and the other way round.
      for (const absent of [token.publicId, 'tok_absent', '']) expect(store.tokens.verifyId(absent)).toBeUndefined()
      expect(store.tokens.verify(token.id)).toBeUndefined()
    })

    test('limits, metadata and origin are kept, changed one by one, and known to authentication', async () => {
      const allowedHours = {
        timezone: 'Europe/Berlin',
        ranges: [{ days: ['mon' as const], from: '08:00', to: '18:00' }],
      }
      const limits = { tokensPerMinute: 10, monthlySpendLimit: 0, allowedHours, localOnly: true }
      const token = newToken({ limits, metadata: '{"team":"a"}', originId: 'tok_first' })
      const kept = { limits: { ...noLimits, ...limits }, originId: 'tok_first' }
      expect(await store.tokens.create(token)).toMatchObject({ ...kept, metadata: '{"team":"a"}', userId: null })
      expect(store.tokens.verify(token.publicId)).toMatchObject(kept)
      const changed = await store.tokens.update(organizationId, token.id, {
        limits: { concurrentRequests: 2, allowedHours: null },
        metadata: null,
      })
      expect(changed).toMatchObject({
        limits: { ...noLimits, tokensPerMinute: 10, monthlySpendLimit: 0, concurrentRequests: 2, localOnly: true },
        metadata: null,
      })
    })

    test('an unknown organization gets none', async () => {
      await expect(store.tokens.create(newToken({ organizationId: 'org_absent' }))).rejects.toMatchObject({
        code: 'not_found',
        message: expect.stringContaining("'org_absent'"),
      })
    })

    test('the list is newest first, by status, a page at a time, of one organization', async () => {
      const organizationId = (await createOrganization(store, 'org_pages')).id
      const tokens = []
      for (let i = 0; i < 5; i++) tokens.push(await store.tokens.create(newToken({ organizationId, name: `t${i}` })))
      tokens.sort((a, b) => (a.id < b.id ? 1 : -1))
      await store.tokens.revoke(organizationId, tokens[1]!.id, 9)
      const first = await store.tokens.list(organizationId, { limit: 2 })
      expect(first.map(({ id }) => id)).toEqual(tokens.slice(0, 2).map(({ id }) => id))
      const rest = await store.tokens.list(organizationId, { limit: 9, after: first[1]!.id })
      expect(rest.map(({ id }) => id)).toEqual(tokens.slice(2).map(({ id }) => id))
      expect((await store.tokens.list(organizationId, { limit: 9, status: 'revoked' })).map(({ id }) => id)).toEqual([
        tokens[1]!.id,
      ])
      expect(await store.tokens.list(organizationId, { limit: 9, status: 'active' })).toHaveLength(4)
      expect(await store.tokens.list('org_test', { limit: 9, after: 'tok_0' })).toEqual([])
    })

    test('the list has the tokens whose names have all words of a search, in any case, a page at a time', async () => {
      const organizationId = (await createOrganization(store, 'org_search')).id
      const names = ['Über nightly', 'nightly ÜBER 2', 'nightly', 'laptop']
      for (const name of names) await store.tokens.create(newToken({ organizationId, name }))
      const namesOf = async (page: Parameters<typeof store.tokens.list>[1]) =>
        (await store.tokens.list(organizationId, page)).map(({ name }) => name).toSorted()
      expect(await namesOf({ limit: 9, search: 'über Night' })).toEqual(['nightly ÜBER 2', 'Über nightly'])
      expect(await namesOf({ limit: 9, search: 'desk' })).toEqual([])
      const [first] = await store.tokens.list(organizationId, { limit: 1, search: 'nightly' })
      expect(await store.tokens.list(organizationId, { limit: 9, search: 'nightly', after: first!.id })).toHaveLength(2)
    })

    test('another organization neither sees, changes nor revokes a token', async () => {
      const foreign = (await createOrganization(store, 'org_foreign')).id
      const token = await store.tokens.create(newToken())
      expect(await store.tokens.find(foreign, token.id)).toBeUndefined()
      expect(await store.tokens.update(foreign, token.id, { name: 'mine now' })).toBeUndefined()
      expect(await store.tokens.revoke(foreign, token.id, 1)).toBeUndefined()
      expect(await store.tokens.rotate(foreign, token.id, newToken({ organizationId: foreign }), 1)).toBeUndefined()
      expect(await store.tokens.find(organizationId, token.id)).toEqual(token)
    })

    test('a change keeps the fields that it does not name', async () => {
      const token = await store.tokens.create(newToken({ models: ['a'], expiresAt: null }))
      expect(await store.tokens.update(organizationId, token.id, { name: 'renamed' })).toEqual({
        ...token,
        name: 'renamed',
      })
      expect(await store.tokens.update(organizationId, token.id, { models: null, status: 'disabled' })).toEqual({
        ...token,
        name: 'renamed',
        models: null,
        status: 'disabled',
      })
    })

    test('a revocation counts at once, can be repeated, and is final', async () => {
      const token = newToken()
      await store.tokens.create(token)
      expect((await store.tokens.revoke(organizationId, token.id, 1))?.status).toBe('revoked')
      expect(store.tokens.verify(token.publicId)?.status).toBe('revoked')
      expect((await store.tokens.revoke(organizationId, token.id, 2))?.status).toBe('revoked')
      await expect(store.tokens.update(organizationId, token.id, { status: 'active' })).rejects.toMatchObject({
        code: 'conflict',
      })
    })

    test('a rotation creates the next token and ends the old one in time; an earlier expiry is kept', async () => {
      const at = Date.now()
      const [lasting, ending] = [newToken(), newToken({ expiresAt: at + 1000 })]
      await store.tokens.create(lasting)
      await store.tokens.create(ending)
      const next = newToken({ name: 'next', createdAt: at })
      expect((await store.tokens.rotate(organizationId, lasting.id, next, at + 5000))?.id).toBe(next.id)
      expect(store.tokens.verify(lasting.publicId)?.expiresAt).toBe(at + 5000)
      expect(store.tokens.verify(next.publicId)?.name).toBe('next')
      await store.tokens.rotate(organizationId, ending.id, newToken({ createdAt: at }), at + 5000)
      expect(store.tokens.verify(ending.publicId)?.expiresAt).toBe(at + 1000)
      await store.tokens.revoke(organizationId, lasting.id, at)
      const refused = newToken({ createdAt: at })
      await expect(store.tokens.rotate(organizationId, lasting.id, refused, at)).rejects.toMatchObject({
        code: 'conflict',
      })
      expect(store.tokens.verify(refused.publicId)).toBeUndefined()
    })

    test('local_only of a rotated token is that of its earlier secrets too', async () => {
      const first = newToken()
      await store.tokens.create(first)
      const next = newToken({ originId: first.id, createdBy: first.id })
      const other = newToken()
      await store.tokens.create(other)
      await store.tokens.rotate(organizationId, first.id, next, Date.now() + 60_000)
      const locals = () => [first, next, other].map(one => store.tokens.verify(one.publicId)?.limits.localOnly)
      await store.tokens.update(organizationId, next.id, { limits: { localOnly: true } })
      expect(locals()).toEqual([true, true, false])
      await store.tokens.update(organizationId, first.id, { limits: { localOnly: false } })
      expect(locals()).toEqual([false, false, false])
    })

    test('only active tokens with the scope are counted', async () => {
      const organizationId = (await createOrganization(store, 'org_counted')).id
      const admin = { organizationId, scopes: ['admin:write' as const] }
      await store.tokens.create(newToken(admin))
      await store.tokens.create(newToken({ ...admin, expiresAt: 100 }))
      const gone = await store.tokens.create(newToken(admin))
      await store.tokens.revoke(organizationId, gone.id, 1)
      await store.tokens.create(newToken({ organizationId }))
      expect(await store.tokens.countActive(organizationId, 'admin:write', 99)).toBe(2)
      expect(await store.tokens.countActive(organizationId, 'admin:write', 100)).toBe(1)
    })

    test('the last use is written at most once a minute', async () => {
      const token = await store.tokens.create(newToken())
      const lastUse = async (at: number) => {
        await store.tokens.touch([{ id: token.id, at }])
        return (await store.tokens.find(organizationId, token.id))?.lastUsedAt
      }
      expect(await lastUse(1_000_000)).toBe(1_000_000)
      expect(await lastUse(1_059_999)).toBe(1_000_000)
      expect(await lastUse(1_060_000)).toBe(1_060_000)
    })
  })
}
