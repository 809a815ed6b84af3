import { expect, test } from 'vitest'
import type { Subject } from './conformance.ts'
import { claimWaiting, completed, failed, finishedCall, newJob, newToken, organizationId } from './records.ts'

const november = Date.UTC(2026, 10, 1)
const december = Date.UTC(2026, 11, 1)

/** Sums of what is spent and held, and the events of limits. */
export function spendRules({ fresh }: Subject): void {
  test('what is spent is added up by month, organization and first token of rotations', async () => {
    await using one = await fresh()
    const { store } = one
    await store.tokens.create(newToken({ id: 'tok_old' }))
    await store.tokens.create(newToken({ id: 'tok_new', publicId: 'other_public', originId: 'tok_old' }))
    const call = (tokenId: string, cost: number, finishedAt: number) => finishedCall({ tokenId, cost, finishedAt })
    const last = call('tok_new', 5, december - 1)
    await store.jobs.record([
      call('tok_old', 3, november),
      last,
      call('tok_new', 7, december),
      call('tok_new', 0, december),
    ])
    // Sent twice, counted once.
    await store.jobs.record([last])
    const sums = await store.spend.read(november)
    const of = (originId: string | null, month: number, spent: number) => ({ organizationId, originId, month, spent })
    expect(sums).toHaveLength(4)
    expect(sums).toEqual(
      expect.arrayContaining([
        of(null, november, 8),
        of(null, december, 7),
        of('tok_old', november, 8),
        of('tok_old', december, 7),
      ]),
    )
    expect(await store.spend.read(december)).toHaveLength(2)
  })

  test('what a token spends counts for those that created it, through rotations and revocations', async () => {
    await using one = await fresh()
    const { store } = one
    let made = 0
    const rates = { requestsPerMinute: null, jobsPerMinute: null, tokensPerMinute: null, concurrentRequests: null }
    const create = (id: string, createdBy: string | null, limit: number | null, originId?: string) =>
      store.tokens.create(
        newToken({
          id,
          name: id,
          publicId: `of_budgets_${made++}`,
          createdBy,
          limits: { monthlySpendLimit: limit },
          ...(originId === undefined ? {} : { originId }),
        }),
      )
    await create('tok_1', null, null)
    await create('tok_2', 'tok_1', 100)
    await create('tok_3', 'tok_2', 80)
    await create('tok_4', 'tok_3', 80)
    await create('tok_5', 'tok_4', 80, 'tok_4')
    await create('tok_6', 'tok_5', null)
    // A new secret with another limit, which counts from then on.
    await create('tok_7', 'tok_2', 60, 'tok_2')
    await store.tokens.revoke(organizationId, 'tok_2', 5)
    const token = await store.tokens.find(organizationId, 'tok_6')
    const parents = [
      { originId: 'tok_4', tokenId: 'tok_5', tokenName: 'tok_5', monthlySpendLimit: 80, ...rates },
      { originId: 'tok_3', tokenId: 'tok_3', tokenName: 'tok_3', monthlySpendLimit: 80, ...rates },
      { originId: 'tok_2', tokenId: 'tok_7', tokenName: 'tok_7', monthlySpendLimit: 60, ...rates },
    ]
    expect(token!.parentLimits).toEqual(parents)
    expect(store.tokens.verifyId('tok_6')!.parentLimits).toEqual(parents)
    expect((await store.tokens.find(organizationId, 'tok_2'))!.parentLimits).toEqual([])
    await store.jobs.submit(newJob({ id: 'job_held', tokenId: 'tok_6', held: 10 }))
    expect(await store.spend.held()).toContainEqual(
      expect.objectContaining({ id: 'job_held', originId: 'tok_6', parentIds: ['tok_4', 'tok_3', 'tok_2'] }),
    )
    const call = (tokenId: string, cost: number) => finishedCall({ tokenId, cost, finishedAt: november })
    await store.jobs.record([call('tok_6', 40), call('tok_5', 5), call('tok_7', 20)])
    const spent = (await store.spend.read(november)).map(sum => [sum.originId ?? '', sum.spent] as const)
    expect(Object.fromEntries(spent)).toEqual({ '': 65, tok_2: 65, tok_3: 45, tok_4: 45, tok_6: 40 })
    const events = await store.events.ofOrganization(organizationId, { sequence: 0, limit: 100 })
    const reached = events
      .filter(({ type }) => type === 'quota.exceeded')
      .map(({ data }) => JSON.parse(data!) as object)
    expect(reached).toEqual([expect.objectContaining({ of: 'token', token_id: 'tok_7', spent: 0.000065 })])
  })

  test('a token shares the limits per minute of the one that created it', async () => {
    await using one = await fresh()
    const { store } = one
    const create = (id: string, createdBy: string | null, limits: object) =>
      store.tokens.create(newToken({ id, name: id, publicId: `of_rates_${id}`, createdBy, limits }))
    await create('tok_1', null, { requestsPerMinute: 10 })
    await create('tok_2', 'tok_1', {})
    await create('tok_3', 'tok_2', {})
    expect(store.tokens.verifyId('tok_3')!.parentLimits).toEqual([
      expect.objectContaining({
        originId: 'tok_1',
        monthlySpendLimit: null,
        requestsPerMinute: 10,
        concurrentRequests: null,
      }),
    ])
  })

  test('so many generations share their budgets', async () => {
    await using one = await fresh()
    const { store } = one
    const create = (at: number) =>
      store.tokens.create(
        newToken({
          id: `tok_${at}`,
          publicId: `generation_${at}`,
          createdBy: at === 0 ? null : `tok_${at - 1}`,
          limits: { monthlySpendLimit: 1 },
        }),
      )
    for (let at = 0; at <= 16; at++) await create(at)
    await expect(create(17)).rejects.toMatchObject({ code: 'conflict' })
  })

  test('a job holds until it ends, however it ends, and a failed attempt that is tried again holds on', async () => {
    await using one = await fresh()
    const { store } = one
    const held = async () => (await store.spend.held()).reduce((sum, job) => sum + job.held, 0)
    for (const id of ['job_a', 'job_b', 'job_c', 'job_d']) await store.jobs.submit(newJob({ id, held: 10 }))
    expect(await store.spend.held()).toContainEqual({
      id: 'job_a',
      organizationId,
      originId: 'tok_test',
      parentIds: [],
      fallbackModelId: null,
      held: 10,
    })
    const [first, second, third] = await claimWaiting(store, { limit: 3 })
    await store.jobs.settle(first!, { ...completed(), cost: 4 })
    await store.jobs.settle(second!, failed())
    await store.jobs.settle(third!, failed(Date.now() + 60_000))
    expect(await held()).toBe(20)
    await store.jobs.cancel(organizationId, 'job_d', Date.now())
    await store.jobs.cancel(organizationId, third!.id, Date.now())
    expect(await held()).toBe(0)
    expect((await store.spend.read(0)).find(({ originId }) => originId === null)?.spent).toBe(4)
  })

  test('the time of failed attempts on slots is added to that of the last one', async () => {
    await using one = await fresh()
    const { store } = one
    await store.jobs.submit(newJob({ id: 'job_twice' }))
    const usage = { inputTokens: 0, outputTokens: 0, gpuMs: 30, energyMj: 500 }
    const [first] = await claimWaiting(store, { limit: 1 })
    await store.jobs.settle(first!, { ...failed(1), usage })
    await store.jobs.wake(Date.now(), 10)
    const [second] = await claimWaiting(store, { limit: 1 })
    await store.jobs.settle(second!, { ...completed(), usage: { ...usage, inputTokens: 9, gpuMs: 12 } })
    const job = await store.jobs.find(organizationId, 'job_twice')
    expect(job?.usage).toMatchObject({ inputTokens: 9, gpuMs: 42, energyMj: 1_000 })
  })

  test('events say once a month that 80 % and 100 % of a limit are reached, for organization and token', async () => {
    await using one = await fresh()
    const { store } = one
    await store.organizations.create({
      id: 'org_limited',
      name: 'limited',
      plan: 'pro',
      createdAt: 1,
      monthlySpendLimit: 100_000_000,
    })
    const limits = { monthlySpendLimit: 90_000_000 }
    await store.tokens.create(
      newToken({ id: 'tok_l', publicId: 'limited_token', organizationId: 'org_limited', name: 'l', limits }),
    )
    const spend = (cost: number, finishedAt: number) =>
      store.jobs.record([finishedCall({ organizationId: 'org_limited', tokenId: 'tok_l', cost, finishedAt })])
    const events = async () =>
      (await store.events.ofOrganization('org_limited', { sequence: 0, limit: 100 }))
        .filter(({ type }) => type.startsWith('quota.'))
        .map(({ type, data }) => {
          const { of, spent } = JSON.parse(data!) as { of: string; spent: number }
          return `${type} ${of} ${spent}`
        })
    await spend(71_000_000, november)
    expect(await events()).toEqual([])
    await spend(8_000_000, november)
    await spend(1_000_000, november)
    await spend(11_000_000, november)
    await spend(20_000_000, november)
    await spend(1, november)
    expect(await events()).toEqual([
      'quota.warning token 79',
      'quota.warning organization 80',
      'quota.exceeded token 91',
      'quota.exceeded organization 111',
    ])
    await spend(500_000_000, december)
    expect((await events()).slice(4)).toEqual([
      'quota.warning organization 500',
      'quota.exceeded organization 500',
      'quota.warning token 500',
      'quota.exceeded token 500',
    ])
  })

  test('an organization without a limit of its own has that of its plan', async () => {
    await using one = await fresh()
    const { store } = one
    await store.organizations.create({ id: 'org_free', name: 'free', plan: 'free', createdAt: 1 })
    await store.spend.limitPlans({ free: 10 })
    await store.jobs.record([finishedCall({ organizationId: 'org_free', cost: 10, finishedAt: november })])
    const events = await store.events.ofOrganization('org_free', { sequence: 0, limit: 10 })
    expect(events.map(({ type }) => type)).toEqual(['quota.warning', 'quota.exceeded'])
  })
}
