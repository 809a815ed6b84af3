import { expect, test } from 'vitest'
import { type ItemStatus, itemStatuses, type PlannedItems } from '../../../core/dag/execution-state.ts'
import type { CommitEffects } from '../../../core/store/workflows.ts'
import { noUsage } from '../../../core/usage.ts'
import type { Subject } from './conformance.ts'
import { newExecution } from './drawn.ts'
import { claimWaiting, completed, failed, organizationId } from './records.ts'

/** Nodes whose task runs once for each item of a list. */
export function itemRules({ store, fresh }: Subject): void {
  /** An execution `a` > `b` in which `a` has items. */
  function drawn(more: Partial<PlannedItems> = {}) {
    const { modelId, ...execution } = newExecution({ nodes: { a: ['b'], b: [] } })
    const [a, b] = execution.nodes
    Object.assign(a!, { direct: false, items: { parallel: 2, onError: 'fail', direct: true, ...more } })
    return { execution, modelId, id: execution.id, a: a!.jobId, b: b!.jobId }
  }
  async function expanded(count: number, more?: Partial<PlannedItems>) {
    const made = drawn(more)
    await store.executions.create(made.execution)
    expect(await store.executions.expand(organizationId, made.a, { at: 5, count })).toBe(true)
    return made
  }
  const itemsOf = (id: string, of = store) =>
    of.executions.items(organizationId, id, { nodeId: 'a', after: -1, limit: 100 })
  const statusesOf = async (id: string) => (await itemsOf(id)).map(({ status }) => status)
  const nodeOf = async (id: string, of = store) => (await of.executions.nodes(organizationId, id))[0]!
  const made = (text: string) => ({ ...completed(), result: JSON.stringify(text) })

  test('the first items get jobs, each end brings the next, and the last end asks for the results', async () => {
    const { id, modelId, a, b } = await expanded(3)
    expect(await store.executions.expand(organizationId, a, { at: 5, count: 3 })).toBe(false)
    expect(await statusesOf(id)).toEqual(['ready', 'ready'])
    expect(await nodeOf(id)).toMatchObject({ status: 'ready', items: { total: 3, running: 0 }, startedAt: null })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({ status: 'pending' })
    const [first, second] = await claimWaiting(store, { modelId })
    expect([first, second]).toMatchObject([0, 1].map(item => ({ parent: { executionId: id, nodeId: 'a', item } })))
    expect(await nodeOf(id)).toMatchObject({ status: 'running', items: { running: 2 } })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      status: 'running',
      progress: { running: 1, waiting: 0 },
    })
    await store.jobs.settle(second!, made('1'))
    expect(await statusesOf(id)).toEqual(['running', 'completed', 'ready'])
    expect(await store.jobs.settle(second!, made('late'))).toBe(false)
    await store.jobs.settle(first!, made('0'))
    expect(await store.executions.gathers()).toEqual([])
    const gathers: CommitEffects['gathers'] = []
    store.onCommitted(effects => gathers.push(...effects.gathers.filter(job => job.executionId === id)))
    const [third] = await claimWaiting(store, { modelId })
    await store.jobs.settle(third!, { ...made('2'), usage: { ...noUsage, inputTokens: 4 }, cost: 7 })
    const job = { organizationId, id: a, executionId: id, nodeId: 'a' }
    expect(gathers).toEqual([job])
    expect(await store.executions.gathers()).toEqual([job])
    const from = { nodeId: 'a', item: 0 }
    expect(await store.executions.itemResults(organizationId, id, from)).toEqual(['"0"', '"1"', '"2"'])
    const answer = { awaits: 'items', at: 9, result: '["0","1","2"]' } as const
    expect(await store.executions.resolve(organizationId, a, answer)).toBe(true)
    expect(await store.executions.gathers()).toEqual([])
    const cost = 7 + 2 * completed().cost
    expect(await nodeOf(id)).toMatchObject({
      status: 'completed',
      cost,
      items: { completed: 3, failed: 0, running: 0 },
    })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({ cost })
    const [next] = await claimWaiting(store, { modelId })
    expect(next!.id).toBe(b)
    await store.jobs.settle(next!, completed())
    expect(await store.executions.summary(organizationId, id)).toMatchObject({ status: 'completed' })
  })

  test('the next item takes the slot that the end of one keeps', async () => {
    const { id, modelId } = await expanded(4, { parallel: 1 })
    const [first] = await claimWaiting(store, { modelId })
    const claimed: CommitEffects['claimedSuccessors'] = []
    store.onCommitted(effects => claimed.push(...effects.claimedSuccessors))
    await store.jobs.settle(first!, made('0'), modelId)
    const [{ before, job }] = claimed as [CommitEffects['claimedSuccessors'][number]]
    expect(before).toBe(first!.id)
    expect(job).toMatchObject({ status: 'processing', parent: { executionId: id, nodeId: 'a', item: 1 } })
    expect(await nodeOf(id)).toMatchObject({ items: { total: 4, completed: 1, running: 1 } })
    expect(await store.jobs.settle(job, made('1'))).toBe(true)
    await store.executions.cancel(organizationId, id, 9)
  })

  test('an item is retried like any job, and its last failure fails the node and cancels the others', async () => {
    const { id, modelId, a } = await expanded(9)
    const [first] = await claimWaiting(store, { modelId })
    await store.jobs.settle(first!, failed(1))
    expect(await nodeOf(id)).toMatchObject({ status: 'running', items: { running: 1, failed: 0 } })
    const [again] = (await claimWaiting(store, { modelId })).filter(job => job.id === first!.id)
    await store.jobs.settle(again!, failed())
    expect(await statusesOf(id)).toEqual(['failed', 'cancelled'])
    const { error } = failed()
    expect(await nodeOf(id)).toMatchObject({
      status: 'failed',
      error: { ...error, message: `Item 0: ${error.message}` },
      items: { total: 9, failed: 1, running: 0 },
    })
    expect(await store.jobs.find(organizationId, a)).toMatchObject({ status: 'failed', awaits: null })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      status: 'failed',
      error: { nodeId: 'a', failedNodes: ['a'], skippedNodes: ['b'] },
      progress: { running: 0, failed: 1, skipped: 1 },
    })
  })

  test('an item may reuse a result, and may be set aside itself', async () => {
    const { id, modelId, a } = await expanded(2)
    const { id: other, modelId: otherModel } = await expanded(1)
    const [done] = await claimWaiting(store, { modelId: otherModel })
    await store.jobs.settle(done!, made('same'))
    const [first, second] = await itemsOf(id)
    const from = { jobId: done!.id, at: 7 }
    expect(await store.executions.reuse(organizationId, first!.jobId!, from)).toBe(true)
    expect(await store.executions.setAside(organizationId, second!.jobId!, { awaits: 'approval', at: 8 })).toBe(true)
    expect(await itemsOf(id)).toMatchObject([
      { status: 'completed', cached: true, jobId: done!.id },
      { status: 'waiting' },
    ])
    expect(await nodeOf(id)).toMatchObject({
      status: 'waiting',
      awaits: 'approval',
      items: { completed: 1, running: 0, waiting: 1 },
    })
    expect(await store.executions.summary(organizationId, id)).toMatchObject({
      timeoutAt: null,
      remainingMs: 60_000,
      progress: { running: 0, waiting: 1 },
    })
    const events = await store.events.ofExecution(organizationId, { sequence: 0, executionId: id, limit: 100 })
    // That an item waits for people is told, other events of items are not.
    expect(events.filter(({ item }) => item !== null)).toMatchObject([{ type: 'job.waiting', nodeId: 'a', item: 1 }])
    const indexesOf = async (status: ItemStatus) => {
      const found = await store.executions.items(organizationId, id, { nodeId: 'a', after: -1, limit: 9, status })
      return found.map(({ index }) => index)
    }
    const byStatus = Object.fromEntries(
      await Promise.all(itemStatuses.map(async status => [status, await indexesOf(status)] as const)),
    )
    const none = { ready: [], running: [], failed: [], cancelled: [] }
    expect(byStatus).toEqual({ ...none, completed: [0], waiting: [1] })
    const answer = { awaits: 'approval', at: 9, result: '"yes"' } as const
    expect(await store.executions.resolve(organizationId, second!.jobId!, answer)).toBe(true)
    const from0 = { nodeId: 'a', item: 0 }
    expect(await store.executions.itemResults(organizationId, id, from0)).toEqual(['"same"', '"yes"'])
    await store.executions.resolve(organizationId, a, { awaits: 'items', at: 9, result: '[]' })
    for (const one of [id, other]) await store.executions.cancel(organizationId, one, 9)
    expect(await claimWaiting(store, { modelId })).toEqual([])
  })

  test('a list waits while each of its items that have a job waits, and no longer', async () => {
    const { id, modelId } = await expanded(3)
    const shown = async () => {
      const { status, awaits, items } = await nodeOf(id)
      const { progress } = (await store.executions.summary(organizationId, id))!
      const listed = await store.executions.items(organizationId, id, {
        nodeId: 'a',
        after: -1,
        limit: 9,
        status: 'waiting',
      })
      expect(listed.length).toBe(items!.waiting)
      return [status, awaits, items!.waiting, progress.running, progress.waiting]
    }
    const [first, second] = (await itemsOf(id)).map(({ jobId }) => jobId!)
    const aside = { awaits: 'event', at: 6 } as const
    await store.executions.setAside(organizationId, first!, aside)
    expect(await shown()).toEqual(['running', 'items', 1, 1, 0])
    await store.executions.setAside(organizationId, second!, aside)
    expect(await shown()).toEqual(['waiting', 'event', 2, 0, 1])
    await store.executions.resolve(organizationId, first!, { ...aside, result: '{}' })
    expect(await shown()).toEqual(['running', 'items', 1, 1, 0])
    const [third] = await claimWaiting(store, { modelId })
    expect(await shown()).toEqual(['running', 'items', 1, 1, 0])
    const { boot, claims } = third!
    await store.executions.setAside(organizationId, third!.id, { ...aside, claim: { boot, claims } })
    expect(await shown()).toEqual(['waiting', 'event', 2, 0, 1])
    const { executions } = await store.executions.list(organizationId, { limit: 1 })
    expect(executions).toMatchObject([{ id, progress: { running: 0, waiting: 1 } }])
    await store.executions.cancel(organizationId, id, 9)
    expect(await shown()).toEqual(['cancelled', null, 0, 0, 0])
  })

  test('jobs of items are in the list of their node, and not in those of jobs and events of the execution', async () => {
    const { id, a } = await expanded(5, { parallel: 4 })
    const page = { nodeId: 'a', after: 0, limit: 2 }
    expect((await store.executions.items(organizationId, id, page)).map(({ index }) => index)).toEqual([1, 2])
    expect(await store.executions.items(organizationId, id, { ...page, status: 'running' })).toEqual([])
    expect(await store.executions.items(organizationId, id, { ...page, nodeId: 'b' })).toEqual([])
    const { jobs } = await store.jobs.list(organizationId, { limit: 10, executionId: id })
    expect(jobs.map(job => job.id)).toEqual([a])
    const events = await store.events.ofExecution(organizationId, { sequence: 0, executionId: id, limit: 100 })
    expect(events.map(({ type }) => type)).toEqual(['workflow_execution.created', 'job.created'])
    await store.executions.cancel(organizationId, id, 9)
  })

  test('items that several executions reuse stay as long as one of them', async () => {
    const { id, a, b, modelId } = await expanded(2)
    for (const job of await claimWaiting(store, { modelId })) await store.jobs.settle(job, made('x'))
    const jobsOf = (await itemsOf(id)).map(({ jobId }) => jobId!)
    await store.executions.resolve(organizationId, a, { awaits: 'items', at: 9, result: '["x","x"]' })
    const again = async () => {
      const { execution, id: own } = drawn()
      Object.assign(execution.nodes[0]!, { reuses: a })
      await store.executions.create(execution)
      await store.executions.cancel(organizationId, own, 9)
      return own
    }
    const [second, third] = [await again(), await again()]
    await store.executions.cancel(organizationId, id, 9)
    const left = async () => {
      const found = await Promise.all([a, ...jobsOf].map(job => store.jobs.find(organizationId, job)))
      return found.filter(job => job !== undefined).length
    }
    for (const one of [id, second]) {
      expect(await store.executions.remove(organizationId, one, 9)).toBe(true)
      expect(await left()).toBe(3)
    }
    expect(await store.executions.remove(organizationId, third, 9)).toBe(true)
    expect(await left()).toBe(0)
    expect(await store.jobs.find(organizationId, b)).toBeUndefined()
  })

  test('a retry has the completed items of the earlier execution, and jobs for the others', async () => {
    await using opened = await fresh()
    const { store: before, place } = opened
    const { execution, id, a, modelId } = drawn({ parallel: 5 })
    await before.executions.create(execution)
    await before.executions.expand(organizationId, a, { at: 5, count: 5 })
    const jobs = await claimWaiting(before, { modelId })
    for (const item of [1, 3, 4]) await before.jobs.settle(jobs[item]!, made(String(item)))
    await before.executions.cancel(organizationId, id, 6)
    const again = drawn({ parallel: 1 })
    Object.assign(again.execution, { parentExecutionId: id })
    Object.assign(again.execution.nodes[0]!, { keepsItems: true })
    await before.executions.create(again.execution)
    expect(await before.executions.expand(organizationId, again.a, { at: 7, count: 5 })).toBe(true)
    expect(await itemsOf(again.id, before)).toMatchObject([
      { index: 0, status: 'ready', cached: false },
      ...[1, 3, 4].map(index => ({ index, status: 'completed', cached: true, jobId: jobs[index]!.id })),
    ])
    expect(await nodeOf(again.id, before)).toMatchObject({ items: { total: 5, completed: 3 } })
    await before.close()
    const after = await place.open()
    try {
      for (const item of [0, 2]) {
        const [job] = await claimWaiting(after, { modelId: again.modelId })
        expect(job!.parent).toMatchObject({ executionId: again.id, item })
        await after.jobs.settle(job!, made(String(item)))
      }
      expect(await after.executions.gathers()).toMatchObject([{ id: again.a }])
      const from = { nodeId: 'a', item: 0 }
      const results = ['"0"', '"1"', '"2"', '"3"', '"4"']
      expect(await after.executions.itemResults(organizationId, again.id, from)).toEqual(results)
      // What is kept was paid before.
      const cost = 2 * completed().cost
      expect(await nodeOf(again.id, after)).toMatchObject({ items: { completed: 5 }, cost })
      expect(await after.executions.summary(organizationId, again.id)).toMatchObject({ cost })
    } finally {
      await after.close()
    }
    expect(await place.findings()).toEqual([])
  })

  test('an item that reuses a result right after the store was opened again has ended', async () => {
    await using opened = await fresh()
    const { store: before, place } = opened
    const { execution, id, a } = drawn()
    const { execution: other, modelId } = drawn()
    for (const one of [execution, other]) await before.executions.create(one)
    await before.executions.expand(organizationId, a, { at: 5, count: 3 })
    await before.executions.expand(organizationId, other.nodes[0]!.jobId, { at: 5, count: 1 })
    const [first] = (await itemsOf(id, before)).map(({ jobId }) => jobId!)
    const { jobId: from } = (await itemsOf(other.id, before))[0]!
    const claims = await claimWaiting(before, { modelId })
    await before.jobs.settle(claims.find(job => job.id === from)!, made('same'))
    await before.close()
    const after = await place.open()
    try {
      expect(await after.executions.reuse(organizationId, first!, { jobId: from!, at: 6 })).toBe(true)
      expect((await itemsOf(id, after)).map(({ status }) => status)).toEqual(['completed', 'ready', 'ready'])
      expect(await nodeOf(id, after)).toMatchObject({ items: { completed: 1, running: 0 } })
    } finally {
      await after.close()
    }
    expect(await place.findings()).toEqual([])
  })

  test('items that begin and end to wait right after the store was opened again are counted', async () => {
    await using opened = await fresh()
    const { store: before, place } = opened
    const { execution, id, a } = drawn()
    await before.executions.create(execution)
    await before.executions.expand(organizationId, a, { at: 5, count: 2 })
    const [first, second] = (await itemsOf(id, before)).map(({ jobId }) => jobId!)
    await before.close()
    const after = await place.open()
    expect(await after.executions.setAside(organizationId, first!, { awaits: 'event', at: 6 })).toBe(true)
    expect(await nodeOf(id, after)).toMatchObject({ items: { waiting: 1 } })
    await after.close()
    const last = await place.open()
    try {
      const end = { awaits: 'event', at: 7, result: '{}' } as const
      expect(await last.executions.resolve(organizationId, first!, end)).toBe(true)
      expect(await nodeOf(id, last)).toMatchObject({ items: { waiting: 0, completed: 1 } })
      await last.jobs.cancel(organizationId, second!, 8)
      expect(await nodeOf(id, last)).toMatchObject({ status: 'failed', items: { waiting: 0 } })
    } finally {
      await last.close()
    }
    expect(await place.findings()).toEqual([])
  })

  test('items go on after the store was opened again, and are removed with their execution, in batches', async () => {
    await using opened = await fresh()
    const { store: before, place } = opened
    const { execution, id, a, modelId } = drawn({ onError: 'continue' })
    await before.executions.create(execution)
    const [whole] = await claimWaiting(before, { modelId })
    const claim = { boot: whole!.boot, claims: whole!.claims }
    expect(await before.executions.expand(organizationId, a, { at: 5, count: 3, claim })).toBe(true)
    const events = await before.events.after(organizationId, { sequence: 0, jobId: a, limit: 9 })
    expect(events.map(({ type }) => type)).toEqual(['job.created', 'job.started', 'job.waiting'])
    const [first, second] = await claimWaiting(before, { modelId })
    await before.jobs.settle(first!, failed())
    await before.close()
    expect(await place.findings()).toEqual([])
    const after = await place.open()
    try {
      expect(await nodeOf(id, after)).toMatchObject({ status: 'running', items: { failed: 1, running: 0 } })
      const claimed = await claimWaiting(after, { modelId })
      expect(claimed.map(({ parent }) => parent!.item)).toEqual([1, 2])
      expect(claimed[0]!.id).toBe(second!.id)
      for (const job of claimed) await after.jobs.settle(job, made('x'))
      expect(await after.executions.gathers()).toHaveLength(1)
      expect(await after.executions.itemResults(organizationId, id, { nodeId: 'a', item: 0 })).toEqual([
        null,
        '"x"',
        '"x"',
      ])
      expect(await after.executions.removeItems(organizationId, id, 9, 2)).toBe(0)
      await after.executions.cancel(organizationId, id, 9)
      expect(await after.executions.removeItems(organizationId, id, 9, 2)).toBe(2)
      expect(await after.executions.removeItems(organizationId, id, 9, 2)).toBe(1)
      expect(await after.executions.remove(organizationId, id, 9)).toBe(true)
      expect(await after.jobs.counts()).toMatchObject({ pending: 0, completed: 0, failed: 0, cancelled: 0 })
    } finally {
      await after.close()
    }
    expect(await place.findings()).toEqual([])
  })
}
