import { afterAll, describe, expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import {
  claimWaiting,
  completed,
  createOrganization,
  failed,
  finishedCall,
  newJob,
  newToken,
  openTestStore,
  organizationId,
} from './_store.ts'

// What every Store must do, whichever database is behind it.
const opened = await openTestStore()
const { store } = opened
afterAll(async () => {
  await opened[Symbol.asyncDispose]()
  expect(opened.fatal).toEqual([])
})

/** Each test has a model of its own, so that claims of one do not take the jobs of another. */
const alone = () => {
  const modelId = newId('evt')
  return {
    modelId,
    submit: (job = {}) => store.jobs.submit(newJob({ modelId, ...job })).then(({ job }) => job),
    claim: (limit = 100, now = Date.now()) => claimWaiting(store, { limit, now, modelId }),
  }
}
describe('organizations', () => {
  test('one that was created is found and listed, and is active', async () => {
    const made = await createOrganization(store, 'org_listed')
    expect(made).toMatchObject({ id: 'org_listed', status: 'active', plan: 'pro', jobsPerMinute: 0 })
    expect(await store.organizations.find('org_listed')).toEqual(made)
    expect(await store.organizations.list()).toContainEqual(made)
    expect(await store.organizations.find('org_absent')).toBeUndefined()
  })

  test('an id and a name are given once', async () => {
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
      requestsPerMinute: null,
      jobsPerMinute: 0,
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

  test('a foreign organization neither sees, changes nor revokes a token', async () => {
    const foreign = (await createOrganization(store, 'org_foreign')).id
    const token = await store.tokens.create(newToken())
    expect(await store.tokens.find(foreign, token.id)).toBeUndefined()
    expect(await store.tokens.update(foreign, token.id, { name: 'mine now' })).toBeUndefined()
    expect(await store.tokens.revoke(foreign, token.id, 1)).toBeUndefined()
    expect(await store.tokens.rotate(foreign, token.id, newToken({ organizationId: foreign }), 1)).toBeUndefined()
    expect(await store.tokens.find(organizationId, token.id)).toEqual(token)
  })

  test('a change keeps what it does not name', async () => {
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

  test('revoking counts at once, twice is once, and nothing brings the token back', async () => {
    const token = newToken()
    await store.tokens.create(token)
    expect((await store.tokens.revoke(organizationId, token.id, 1))?.status).toBe('revoked')
    expect(store.tokens.verify(token.publicId)?.status).toBe('revoked')
    expect((await store.tokens.revoke(organizationId, token.id, 2))?.status).toBe('revoked')
    await expect(store.tokens.update(organizationId, token.id, { status: 'active' })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test('rotation makes the next and ends the old in time; an end that is nearer stays', async () => {
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

  test('a use is written at most once a minute', async () => {
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

describe('jobs', () => {
  test('a submitted one is pending, and what submit answers is what is stored', async () => {
    const { submit } = alone()
    const job = await submit({ metadata: '{"ref":"1"}', priority: 5 })
    expect(job).toMatchObject({ status: 'pending', kind: 'async', attempt: 0, claims: 0, metadata: '{"ref":"1"}' })
    expect(await store.jobs.find(organizationId, job.id)).toEqual(job)
    expect(await store.jobs.find('org_absent', job.id)).toBeUndefined()
  })

  test('the same key is the same job for 24 hours, with another body a refusal', async () => {
    const { submit } = alone()
    const key = (bodyHash = 'h1', createdAt = 1_000) => ({
      createdAt,
      idempotency: { key: 'POST /api/jobs k', bodyHash },
    })
    const first = await submit(key())
    expect(await store.jobs.submit(newJob(key('h1', 5_000)))).toEqual({ job: first, replayed: true })
    await expect(store.jobs.submit(newJob(key('h2')))).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    const later = await store.jobs.submit(newJob(key('h2', 1_000 + 24 * 3_600_000)))
    expect(later.replayed).toBe(false)
    const elsewhere = (await createOrganization(store, 'org_keys')).id
    expect((await store.jobs.submit(newJob({ ...key(), organizationId: elsewhere }))).replayed).toBe(false)
    for (const { id, organizationId } of [first, later.job]) await store.jobs.cancel(organizationId, id, 1)
  })

  test('a hundred at once with each of twenty keys make twenty jobs', async () => {
    const { modelId } = alone()
    const submits = Array.from({ length: 20 }, (_, k) =>
      Array.from({ length: 100 }, () =>
        store.jobs.submit(newJob({ modelId, idempotency: { key: `race ${modelId} ${k}`, bodyHash: 'h' } })),
      ),
    )
    const answers = await Promise.all(submits.flat())
    expect(new Set(answers.map(({ job }) => job.id)).size).toBe(20)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(20)
    const claimed = await claimWaiting(store, { modelId })
    expect(claimed).toHaveLength(20)
    for (const job of claimed) await store.jobs.cancel(job.organizationId, job.id, 1)
  })

  test('a clock that went back does not hold up a job that is due at once', async () => {
    const { submit, claim } = alone()
    const job = await submit()
    expect((await claim(1, Date.now() - 3_600_000)).map(({ id }) => id)).toEqual([job.id])
  })

  test('a completed job holds its result, is billed once, and a second result is late', async () => {
    const { submit, claim } = alone()
    await submit()
    const [job] = await claim()
    const { ledgerRows, lateResults } = store.stats()
    const now = () => store.jobs.find(organizationId, job!.id)
    expect(await store.jobs.settle(job!, completed(5_000))).toBe(true)
    const ended = await now()
    expect(ended).toMatchObject({
      status: 'completed',
      result: '{"ok":true}',
      cost: 7,
      finishedAt: 5_000,
      error: null,
      boot: null,
    })
    expect(await store.jobs.settle(job!, { ...completed(), result: '"other"' })).toBe(false)
    expect(await now()).toEqual(ended)
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
    expect(store.stats().lateResults).toBe(lateResults + 1)
  })

  test('a failed attempt with a retry waits for its time, charged, and is not billed; without one it ends', async () => {
    const { submit, claim } = alone()
    await submit()
    const [job] = await claim()
    const { ledgerRows } = store.stats()
    const at = Date.now() + 60_000
    expect(await store.jobs.settle(job!, failed(at))).toBe(true)
    expect(await store.jobs.find(organizationId, job!.id)).toMatchObject({
      status: 'pending',
      attempt: 1,
      notBefore: at,
      error: { code: 'worker_error' },
    })
    expect(await claim()).toEqual([])
    expect(store.stats().ledgerRows).toBe(ledgerRows)
    const [again] = await claim(1, at)
    expect(again).toMatchObject({ attempt: 2, claims: 2 })
    expect(await store.jobs.settle(again!, failed(null, 'timeout'))).toBe(true)
    expect(await store.jobs.find(organizationId, again!.id)).toMatchObject({
      status: 'failed',
      error: { code: 'timeout' },
      cost: 0,
      usage: { inputTokens: 0, outputTokens: 0 },
    })
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
  })

  test('a released job is uncharged, keeps its place, and its old claim does not fit the new attempt', async () => {
    const { submit, claim } = alone()
    const [first, second] = [await submit(), await submit()]
    const [claimed] = await claim(1)
    expect(claimed!.id).toBe(first.id)
    expect(await store.jobs.release(claimed!, 0)).toBe(true)
    expect(await store.jobs.release(claimed!, 0)).toBe(false)
    const again = await claim()
    expect(again.map(({ id }) => id)).toEqual([first.id, second.id])
    expect(again.map(({ attempt, claims }) => [attempt, claims])).toEqual([
      [1, 2],
      [1, 1],
    ])
    expect(await store.jobs.settle(claimed!, completed())).toBe(false)
    expect(await store.jobs.settle({ ...again[0]!, boot: 'another' }, completed())).toBe(false)
    expect(await store.jobs.settle(again[0]!, completed())).toBe(true)
  })

  test('cancel ends a pending and a processing job, is idempotent, and comes too late for an ended one', async () => {
    const { submit, claim } = alone()
    const waiting = await submit()
    expect(await store.jobs.cancel(organizationId, waiting.id, 10)).toMatchObject({
      status: 'cancelled',
      finishedAt: 10,
    })
    await submit()
    const [runs] = await claim()
    const { ledgerRows } = store.stats()
    expect((await store.jobs.cancel(organizationId, runs!.id, 20))?.status).toBe('cancelled')
    expect((await store.jobs.cancel(organizationId, runs!.id, 30))?.finishedAt).toBe(20)
    expect(await store.jobs.settle(runs!, completed())).toBe(false)
    expect(await store.jobs.find(organizationId, runs!.id)).toMatchObject({ status: 'cancelled', result: null })
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
    await submit()
    const [done] = await claim()
    await store.jobs.settle(done!, completed())
    await expect(store.jobs.cancel(organizationId, done!.id, 1)).rejects.toMatchObject({
      code: 'job_already_finished',
      message: expect.stringContaining(done!.id),
    })
    expect(await store.jobs.cancel('org_absent', done!.id, 1)).toBeUndefined()
  })

  test('records of finished calls are jobs with a bill, however often they are sent', async () => {
    const { ledgerRows } = store.stats()
    const calls = [
      finishedCall(),
      finishedCall({ status: 'cancelled' }),
      finishedCall({
        status: 'failed',
        error: { code: 'timeout', message: 'Too slow.', type: 'timeout_error', retryable: true, attempt: 1 },
      }),
    ]
    await store.jobs.record(calls)
    await store.jobs.record([...calls, finishedCall()])
    expect(store.stats().ledgerRows).toBe(ledgerRows + 4)
    expect(await store.jobs.find(organizationId, calls[0]!.id)).toMatchObject({
      kind: 'sync',
      status: 'completed',
      inputs: 'null',
      result: null,
      cost: 15,
      usage: { inputTokens: 10, outputTokens: 5 },
    })
    expect((await store.jobs.find(organizationId, calls[2]!.id))?.error?.code).toBe('timeout')
    expect(await store.jobs.find('org_absent', calls[0]!.id)).toBeUndefined()
    await expect(store.jobs.cancel(organizationId, calls[0]!.id, 1)).rejects.toMatchObject({
      code: 'job_already_finished',
    })
    expect((await store.jobs.cancel(organizationId, calls[1]!.id, 1))?.status).toBe('cancelled')
    expect(await store.jobs.cancel('org_absent', calls[1]!.id, 1)).toBeUndefined()
  })

  test('one command that fails takes no other with it', async () => {
    const { modelId } = alone()
    const good = () => store.jobs.submit(newJob({ modelId }))
    const twice = newJob({ modelId })
    const outcomes = await Promise.allSettled([
      good(),
      store.jobs.submit(twice),
      store.jobs.submit(twice),
      store.jobs.submit(newJob({ organizationId: 'org_absent' })),
      good(),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    for (const outcome of outcomes)
      if (outcome.status === 'fulfilled')
        expect(await store.jobs.cancel(organizationId, outcome.value.job.id, 1)).toBeDefined()
  })

  test('the counts follow every change', async () => {
    const { submit, claim } = alone()
    const before = await store.jobs.counts()
    await submit()
    const doomed = await submit()
    await store.jobs.cancel(organizationId, doomed.id, 1)
    const [job] = await claim()
    const processing = await store.jobs.counts()
    expect(processing).toEqual({
      ...before,
      processing: before.processing + 1,
      cancelled: before.cancelled + 1,
    })
    await store.jobs.settle(job!, completed())
    expect(await store.jobs.counts()).toEqual({
      ...before,
      completed: before.completed + 1,
      cancelled: before.cancelled + 1,
    })
  })
})

test('a closed store refuses and says so', async () => {
  const other = await openTestStore()
  await other.store.close()
  await expect(other.store.jobs.submit(newJob())).rejects.toMatchObject({ code: 'shutting_down' })
  await expect(other.store.jobs.counts()).rejects.toMatchObject({ code: 'shutting_down' })
  expect(other.fatal).toEqual([])
})
