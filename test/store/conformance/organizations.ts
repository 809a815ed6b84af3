import { describe, expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { type Actor, scopes, theServer } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { createOrganization, newJob, newToken } from './records.ts'

const by: Actor = { kind: 'token', tokenId: 'tok_admin', userId: null, address: '203.0.113.1', osUser: null }
const now = Date.now()

/** Changing, suspending and deleting organizations; users; the audit log. */
export function organizationRules({ store }: Subject): void {
  const { organizations, users, audit, tokens } = store
  const make = async () => (await createOrganization(store, newId('org'))).id
  const addUser = (organizationId: string, role: 'owner' | 'admin' | 'member', email: string = `${role}@x.org`) =>
    users.create({ id: newId('user'), organizationId, name: role, email, role, createdAt: now }, by)
  const logged = async (id: string) => (await audit.list(id, { limit: 100 })).records.map(({ action }) => action)

  describe('organizations that change', () => {
    test('keep what is not named; a change to the same values is no act', async () => {
      const id = await make()
      const before = await organizations.find(id)
      const changed = await organizations.update(id, { plan: 'free', pendingJobs: 7, share: 2 }, by, now)
      expect(changed).toEqual({ ...before, plan: 'free', pendingJobs: 7, share: 2, updatedAt: now })
      await organizations.update(id, { pendingJobs: 7 }, by, now + 1)
      expect(await logged(id)).toEqual(['organization.updated', 'organization.created'])
      expect(await organizations.update('org_absent', { plan: 'free' }, by, now)).toBeUndefined()
    })

    test('a refused act changes nothing and is not logged', async () => {
      const [id, other] = [await make(), await organizations.find(await make())]
      await expect(organizations.update(id, { name: other!.name, plan: 'free' }, by, now)).rejects.toMatchObject({
        code: 'conflict',
        param: 'name',
      })
      expect(await organizations.find(id)).toMatchObject({ plan: 'pro' })
      expect(await logged(id)).toEqual(['organization.created'])
    })

    test('are suspended and resumed, each once', async () => {
      const id = await make()
      for (const status of ['suspended', 'suspended', 'active', 'active'] as const)
        expect(await organizations.setStatus(id, status, by, now)).toMatchObject({ status })
      expect(await logged(id)).toEqual(['organization.resumed', 'organization.suspended', 'organization.created'])
      await organizations.setStatus(id, 'suspended', by, now)
      expect(await organizations.suspended()).toContain(id)
    })
  })

  describe('organizations that end', () => {
    test('with unfinished work only by force; the work is then cancelled and everything erased in batches', async () => {
      const id = await make()
      const job = async () => (await store.jobs.submit(newJob({ id: newId('job'), organizationId: id }))).job.id
      const first = await job()
      await job()
      await job()
      await store.jobs.claim(id, first, now + 1e9)
      expect(await organizations.activeWork(id)).toEqual({ jobs: 3, executions: 0 })
      await expect(organizations.remove(id, false, by, now)).rejects.toMatchObject({ code: 'conflict' })
      expect(await organizations.find(id)).toMatchObject({ status: 'active' })
      expect(await organizations.remove(id, true, by, now)).toEqual({ tokensRevoked: 0, usersRemoved: 0 })
      expect(await organizations.unerased()).toContain(id)
      expect(await organizations.cancelWork(id, now, 2)).toEqual({ jobs: 2, executions: 0 })
      expect(await organizations.cancelWork(id, now, 2)).toEqual({ jobs: 1, executions: 0 })
      expect(await organizations.cancelWork(id, now, 2)).toEqual({ jobs: 0, executions: 0 })
      let more = true
      while (more) ({ more } = await organizations.erase(id, now, 2))
      expect(await store.jobs.find(id, first)).toBeUndefined()
      expect(await store.jobs.wasRemoved(id, first)).toBe(true)
      expect(await organizations.unerased()).not.toContain(id)
    })

    test('free their name, keep it for the list, and accept no tokens and users any more', async () => {
      const id = await make()
      const { name } = (await organizations.find(id))!
      const token = newToken({ organizationId: id })
      await tokens.create(token)
      await addUser(id, 'owner')
      expect(await organizations.remove(id, false, by, now)).toEqual({ tokensRevoked: 1, usersRemoved: 1 })
      expect(await organizations.find(id)).toMatchObject({ name, status: 'deleted' })
      expect(tokens.verify(token.publicId)).toMatchObject({ status: 'revoked' })
      expect(await users.list(id, { limit: 10 })).toEqual([])
      await organizations.create({ id: newId('org'), name, plan: 'free', createdAt: now }, by)
      await expect(tokens.create(newToken({ organizationId: id }))).rejects.toMatchObject({ code: 'not_found' })
      await expect(addUser(id, 'owner')).rejects.toMatchObject({ code: 'not_found' })
      for (const act of [
        () => organizations.update(id, { plan: 'free' }, by, now),
        () => organizations.setStatus(id, 'active', by, now),
        () => organizations.remove(id, true, by, now),
      ])
        await expect(act()).rejects.toMatchObject({ code: 'conflict' })
    })

    test('erasing an organization that was not deleted does nothing', async () => {
      const id = await make()
      const { job } = await store.jobs.submit(newJob({ id: newId('job'), organizationId: id }))
      expect(await organizations.erase(id, now, 10)).toMatchObject({ more: false, files: 0 })
      expect(await store.jobs.find(id, job.id)).toMatchObject({ status: 'pending' })
    })
  })

  describe('users', () => {
    test('bound the scopes of their tokens, also when the role is lowered', async () => {
      const id = await make()
      const { id: userId } = await addUser(id, 'admin')
      const [wide, narrow] = [
        newToken({ id: newId('tok'), organizationId: id, userId, scopes: [...scopes] }),
        newToken({ id: newId('tok'), organizationId: id, userId, scopes: ['admin:read'] }),
      ]
      await tokens.create(wide, by)
      await tokens.create(narrow, by)
      await expect(users.update(id, userId, { role: 'member' }, { by, at: now, force: false })).rejects.toMatchObject({
        code: 'conflict',
      })
      const done = await users.update(id, userId, { role: 'member' }, { by, at: now, force: true })
      expect(done).toEqual({ tokensNarrowed: 1, tokensRevoked: 1 })
      expect(await tokens.find(id, wide.id)).toMatchObject({ scopes: ['user:read', 'user:write'] })
      expect(await tokens.find(id, narrow.id)).toMatchObject({ status: 'revoked' })
      await expect(tokens.update(id, wide.id, { scopes: ['admin:read'] })).rejects.toMatchObject({
        code: 'insufficient_scope',
      })
      expect(await users.summary(id, userId)).toMatchObject({ activeTokens: 1, role: 'member' })
    })

    test('of another organization own nothing here', async () => {
      const [id, other] = [await make(), await make()]
      const { id: userId } = await addUser(other, 'owner')
      await expect(tokens.create(newToken({ organizationId: id, userId }))).rejects.toMatchObject({
        code: 'invalid_value',
        param: 'user_id',
      })
      expect(await users.find(id, userId)).toBeUndefined()
      expect(await users.remove(id, userId, { by, at: now, force: true })).toBeUndefined()
    })
  })

  test('the audit log is read newest first, in pages, by organization', async () => {
    const id = await make()
    for (let at = 1; at <= 5; at++) await organizations.update(id, { pendingJobs: at }, theServer, now + at)
    const first = await audit.list(id, { limit: 4 })
    expect(first.records.map(({ at }) => at - now)).toEqual([5, 4, 3, 2])
    expect(first.records[0]).toMatchObject({
      actor: theServer,
      before: { pending_jobs: 4 },
      after: { pending_jobs: 5 },
    })
    const second = await audit.list(id, { limit: 4, before: first.next! })
    expect(second.records.map(({ action }) => action)).toEqual(['organization.updated', 'organization.created'])
    expect(second.next).toBeNull()
    expect((await audit.list(id, { limit: 10, since: now + 4 })).records).toHaveLength(2)
    expect((await audit.list('org_absent', { limit: 10 })).records).toEqual([])
  })

  test('whether accounts have changed since an entry is known', async () => {
    const id = await make()
    const { newest } = await audit.accountsChanged(Number.MAX_SAFE_INTEGER)
    expect(await audit.accountsChanged(newest)).toEqual({ newest, changed: false })
    await audit.record({
      organizationId: id,
      at: now,
      actor: theServer,
      action: 'device_pause.added',
      targetId: 'gpu0',
      before: null,
      after: null,
    })
    expect(await audit.accountsChanged(newest)).toEqual({ newest: newest + 1, changed: false })
    await organizations.update(id, { pendingJobs: 9 }, theServer, now)
    expect(await audit.accountsChanged(newest)).toEqual({ newest: newest + 2, changed: true })
    expect(await audit.accountsChanged(newest + 2)).toEqual({ newest: newest + 2, changed: false })
  })
}
