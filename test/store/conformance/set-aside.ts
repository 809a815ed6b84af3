import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { largeResultBytes } from '../../../core/store/store.ts'
import type { CommitEffects } from '../../../core/store/workflows.ts'
import type { Subject } from './conformance.ts'
import { newExecution } from './drawn.ts'
import { claimWaiting, createOrganization, completed as ended, failed, organizationId } from './records.ts'

/** Jobs of nodes that something else than a run ends. */
export function setAsideRules({ store, fresh }: Subject): void {
  const { error } = failed()

  /** An execution `a` > `b`, and the ids of its jobs. */
  async function begun() {
    const { modelId, ...execution } = newExecution({ nodes: { a: ['b'], b: [] } })
    await store.executions.create(execution)
    const [a, b] = execution.nodes.map(({ jobId }) => jobId) as [string, string]
    return { ...execution, modelId, a, b }
  }
  const nodesOf = async (id: string) =>
    (await store.executions.nodes(organizationId, id)).map(({ status, awaits }) =>
      awaits ? `${status}: ${awaits}` : status,
    )

  test('a job that is set aside is in no queue, and its execution runs and says that it waits', async () => {
    const { id, modelId, a } = await begun()
    const how = { awaits: 'approval', at: 5, inputs: '{"title":"Send it?"}' } as const
    expect(await store.executions.setAside(organizationId, a, how)).toBe(true)
    expect(await store.jobs.find(organizationId, a)).toMatchObject({
      status: 'pending',
      awaits: 'approval',
      inputs: '{"title":"Send it?"}',
      attempt: 0,
    })
    expect(await nodesOf(id)).toEqual(['waiting: approval', 'pending'])
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      status: 'running',
      startedAt: 5,
      timeoutAt: null,
      remainingMs: 60_000,
      progress: { running: 0, waiting: 1 },
    })
    expect(await claimWaiting(store, { modelId })).toEqual([])
    expect(await store.jobs.claim(organizationId, a, Date.now() + 1e9)).toBeUndefined()
    expect((await store.jobs.backlog()).filter(one => one.modelId === modelId)).toEqual([])
    const from = { modelId, organizationId, class: 'workflow', from: 0, limit: 9 } as const
    expect(await store.jobs.waiting(from)).toEqual([])
    expect((await store.jobs.wake(Date.now() + 1e12, 1_000)).map(job => job.id)).not.toContain(a)
    expect(await store.jobs.deferred()).not.toContainEqual({ organizationId, id: a })
    expect(await store.jobs.resume(organizationId, a, { inputs: '{}', notBefore: 0 }, 6)).toBeUndefined()
    expect(await store.executions.setAside(organizationId, a, how)).toBe(false)
    await store.executions.cancel(organizationId, id, 6)
    expect(await store.jobs.find(organizationId, a)).toMatchObject({ status: 'cancelled', awaits: null })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({ progress: { waiting: 0, skipped: 2 } })
  })

  test('its result ends it once, is kept, and lets the next node run', async () => {
    const { id, modelId, a, b } = await begun()
    await store.executions.setAside(organizationId, a, { awaits: 'event', at: 5 })
    const other = (await createOrganization(store, newId('org'))).id
    const answer = { awaits: 'event', at: 9, result: '{"ok":true}' } as const
    expect(await store.executions.resolve(other, a, answer)).toBe(false)
    expect(await store.executions.resolve(organizationId, a, { ...answer, awaits: 'time' })).toBe(false)
    expect(await store.executions.resolve(organizationId, b, answer)).toBe(false)
    const both = [answer, { ...answer, result: '{"ok":false}' }].map(how =>
      store.executions.resolve(organizationId, a, how),
    )
    expect(await Promise.all(both)).toEqual([true, false])
    expect(await nodesOf(id)).toEqual(['completed', 'ready'])
    expect(await store.executions.results(organizationId, id, ['a'])).toMatchObject({ a: { result: '{"ok":true}' } })
    expect(await store.jobs.find(organizationId, a)).toMatchObject({ awaits: null, cost: 0, finishedAt: 9, attempt: 0 })
    const [next] = await claimWaiting(store, { modelId })
    expect(next!.id).toBe(b)
    expect(await store.jobs.settle(next!, ended())).toBe(true)
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      status: 'completed',
      progress: { completed: 2, waiting: 0 },
    })
  })

  test('a large result is kept like any other', async () => {
    const { id, a } = await begun()
    await store.executions.setAside(organizationId, a, { awaits: 'event', at: 5 })
    const result = JSON.stringify('x'.repeat(largeResultBytes))
    expect(await store.executions.resolve(organizationId, a, { awaits: 'event', at: 6, result })).toBe(true)
    const { result: stored } = (await store.executions.results(organizationId, id, ['a'])).a!
    expect(stored).toMatchObject({ bytes: result.length })
    await store.executions.cancel(organizationId, id, 7)
  })

  test('a failure ends it and its execution', async () => {
    const { id, a } = await begun()
    await store.executions.setAside(organizationId, a, { awaits: 'execution', at: 5 })
    expect(await store.executions.resolve(organizationId, a, { awaits: 'execution', at: 6, error })).toBe(true)
    expect(await nodesOf(id)).toEqual(['failed', 'skipped'])
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      status: 'failed',
      error: { nodeId: 'a', cause: error },
    })
  })

  test('a job that runs is set aside by its own run only, and the attempt is not counted', async () => {
    const { id, modelId, a } = await begun()
    const [claim] = await claimWaiting(store, { modelId })
    const how = { awaits: 'time', at: 5 } as const
    expect(await store.executions.setAside(organizationId, a, how)).toBe(false)
    const stale = { boot: claim!.boot, claims: claim!.claims + 1 }
    expect(await store.executions.setAside(organizationId, a, { ...how, claim: stale })).toBe(false)
    expect(await store.executions.setAside(organizationId, a, { ...how, claim: claim! })).toBe(true)
    expect(await store.jobs.settle(claim!, ended())).toBe(false)
    expect(await nodesOf(id)).toEqual(['waiting: time', 'pending'])
    expect(await store.jobs.find(organizationId, a)).toMatchObject({ attempt: 0, startedAt: null, awaits: 'time' })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({ progress: { running: 0, waiting: 1 } })
    await store.jobs.cancel(organizationId, a, 6)
    expect(await nodesOf(id)).toEqual(['failed', 'skipped'])
  })

  test('the time limit stops while an execution only waits, and goes on with what is left of it', async () => {
    const { id, a, b, modelId } = await begun()
    const [claim] = await claimWaiting(store, { modelId })
    const { timeoutAt: first } = (await store.executions.summary(organizationId, id))!
    const at = first! - 50_000
    expect(await store.executions.setAside(organizationId, a, { awaits: 'approval', at, claim: claim! })).toBe(true)
    const aWeekLater = at + 604_800_000
    await store.executions.expire(aWeekLater, 1_000)
    expect(await nodesOf(id)).toEqual(['waiting: approval', 'pending'])
    const changes: CommitEffects['executions'] = []
    store.onCommitted(({ executions }) => void changes.push(...executions.filter(one => one.id === id)))
    await store.executions.resolve(organizationId, a, { awaits: 'approval', at: aWeekLater, result: '1' })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      timeoutAt: aWeekLater + 50_000,
      remainingMs: null,
    })
    expect(changes).toContainEqual(expect.objectContaining({ timeoutAt: aWeekLater + 50_000, ended: false }))
    await store.executions.expire(aWeekLater + 50_000, 1_000)
    expect(await nodesOf(id)).toEqual(['completed', 'cancelled'])
    expect(await store.jobs.find(organizationId, b)).toMatchObject({ status: 'cancelled' })
  })

  test('a time limit ends a node that waits beside others, and those before it reach it', async () => {
    const { modelId: _, ...execution } = newExecution({ nodes: { a: ['c'], b: [], c: [] } })
    await store.executions.create(execution)
    const { id } = execution
    const a = execution.nodes[0]!.jobId
    await store.executions.setAside(organizationId, a, { awaits: 'approval', at: 5 })
    await store.executions.expire(60_005, 1_000)
    expect(await nodesOf(id)).toEqual(['timed_out', 'cancelled', 'cancelled'])
    expect(await store.executions.resolve(organizationId, a, { awaits: 'approval', at: 7, result: '1' })).toBe(false)
  })

  test('it waits on after the store was opened again', async () => {
    await using opened = await fresh()
    const { store: before, place } = opened
    const { modelId: _, ...execution } = newExecution({ nodes: { a: ['b'], b: [] } })
    const jobId = execution.nodes[0]!.jobId
    await before.executions.create(execution)
    const wait = { digest: randomBytes(32), dueAt: 70, remindAt: 60 }
    await before.executions.setAside(organizationId, jobId, { awaits: 'approval', at: 5, inputs: '{}', wait })
    await before.close()
    expect(await place.findings()).toEqual([])
    const after = await place.open()
    try {
      expect(await after.jobs.backlog()).toEqual([])
      const answer = { awaits: 'approval', at: 9, result: '1' } as const
      expect(await after.executions.resolve(organizationId, jobId, answer)).toBe(true)
      // It has waited since 5.
      expect(await after.executions.summary(organizationId, execution.id)).toMatchObject({
        status: 'running',
        timeoutAt: 60_009,
        progress: { completed: 1 },
      })
    } finally {
      await after.close()
    }
  })
}
