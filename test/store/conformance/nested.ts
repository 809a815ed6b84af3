import { expect, test } from 'vitest'
import { noModelId } from '../../../core/schemas/task-table.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { CommitEffects, NewExecution } from '../../../core/store/workflows.ts'
import type { Subject } from './conformance.ts'
import { newExecution, newWorkflow } from './drawn.ts'
import { completed, organizationId } from './records.ts'

/** Executions that nodes of other executions run. */
export function nestedRules({ store }: Subject): void {
  const ended: CommitEffects['nestedEnded'] = []
  store.onCommitted(effects => void ended.push(...effects.nestedEnded))

  async function create(more: Partial<NewExecution> = {}): Promise<NewExecution> {
    const { modelId: _, ...made } = newExecution({ nodes: { a: ['b'], b: [] } }, more)
    await store.executions.create(made)
    return made
  }
  const jobOf = ({ nodes }: NewExecution, node = 0) => nodes[node]!.jobId
  const claim = async (execution: NewExecution, node = 0): Promise<JobRecord> =>
    (await store.jobs.claim(organizationId, jobOf(execution, node), Date.now()))!
  const nest = (outer: NewExecution, more: Partial<NewExecution> = {}) =>
    create({ parentJob: { id: jobOf(outer) }, ...more })
  const nodeOf = async ({ id }: NewExecution) => (await store.executions.nodes(organizationId, id))[0]!
  const now = async ({ id }: NewExecution) => (await store.executions.summary(organizationId, id))!

  test('one commit creates an execution and sets the job of its node aside; the same job has no second one', async () => {
    const outer = await create()
    const inner = await nest(outer)
    const parentNode = { executionId: outer.id, nodeId: 'a' }
    expect(await now(inner)).toMatchObject({ status: 'pending', parentNode, parentExecutionId: null })
    expect(await now(outer)).toMatchObject({ status: 'running', parentNode: null, progress: { waiting: 1 } })
    expect(await nodeOf(outer)).toMatchObject({ status: 'waiting', awaits: 'execution', childExecutionId: inner.id })
    const { modelId: _, ...again } = newExecution({ nodes: { a: [] } }, { parentJob: { id: jobOf(outer) } })
    expect(await store.executions.create(again)).toMatchObject({ replayed: true, execution: { id: inner.id } })
    expect(await store.executions.nested(organizationId, outer.id, { nodeId: 'a' })).toMatchObject({ id: inner.id })
    await store.executions.cancel(organizationId, outer.id, Date.now())
    await store.executions.cancel(organizationId, inner.id, Date.now()).catch(() => undefined)
    // The result of the outer one may name files of the inner one.
    await expect(store.executions.remove(organizationId, inner.id, Date.now())).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await store.executions.remove(organizationId, outer.id, Date.now())).toBe(true)
    expect(await store.executions.remove(organizationId, inner.id, Date.now())).toBe(true)
  })

  test('a run that sets its job aside is not an attempt; an outdated one creates nothing', async () => {
    const outer = await create()
    const { boot, claims } = await claim(outer)
    await expect(nest(outer)).rejects.toMatchObject({ code: 'conflict' })
    const outdated = { boot, claims: claims + 1 }
    await expect(nest(outer, { parentJob: { id: jobOf(outer), claim: outdated } })).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await nodeOf(outer)).toMatchObject({ status: 'running', childExecutionId: null })
    await nest(outer, { parentJob: { id: jobOf(outer), claim: { boot, claims } } })
    expect(await nodeOf(outer)).toMatchObject({ status: 'waiting', attempts: 0 })
    await store.executions.cancel(organizationId, outer.id, Date.now())
    await expect(nest(outer, { parentJob: { id: jobOf(outer, 1) } })).rejects.toMatchObject({ code: 'conflict' })
  })

  test('one that its workflow refuses leaves the job of its node as it was', async () => {
    const concurrency = { limit: 1, when_reached: 'refuse' as const }
    const { id: workflowId } = await store.workflows.create(newWorkflow({ concurrency }))
    await create({ workflowId, workflowVersion: 1 })
    const outer = await create()
    await expect(nest(outer, { workflowId, workflowVersion: 1 })).rejects.toMatchObject({ code: 'conflict' })
    expect(await nodeOf(outer)).toMatchObject({ status: 'ready', childExecutionId: null })
  })

  test('what nodes use counts at once for all executions around theirs, and the end is told once', async () => {
    const outer = await create()
    const middle = await nest(outer)
    const inner = await nest(middle)
    ended.length = 0
    await store.jobs.settle(await claim(inner), completed())
    const { cost, usage } = await now(inner)
    expect(cost).toBeGreaterThan(0)
    expect([await now(middle), await now(outer)]).toMatchObject([
      { cost, usage },
      { cost, usage },
    ])
    expect(ended).toEqual([])
    await store.jobs.settle(await claim(inner, 1), completed())
    expect(ended).toEqual([{ organizationId, id: inner.id, jobId: jobOf(middle) }])
    expect(await store.executions.unresolved()).toContainEqual(ended[0])
    const resolve = () =>
      store.executions.resolve(organizationId, jobOf(middle), {
        awaits: 'execution',
        at: Date.now(),
        result: '{"a":1}',
      })
    expect([await resolve(), await resolve()]).toEqual([true, false])
    expect(await store.executions.unresolved()).not.toContainEqual(ended[0])
    expect([(await nodeOf(middle)).status, (await now(outer)).cost]).toEqual(['completed', 2 * cost])
  })

  test('however the job of a node ends, the execution that it runs ends with it', async () => {
    const ends: ((outer: NewExecution) => Promise<unknown>)[] = [
      outer => store.jobs.cancel(organizationId, jobOf(outer), Date.now()),
      outer => store.executions.cancel(organizationId, outer.id, Date.now()),
      async outer => store.executions.expire((await now(outer)).timeoutAt!, 100),
      outer => store.jobs.giveUp(organizationId, jobOf(outer), Date.now()),
    ]
    for (const end of ends) {
      const outer = await create()
      const inner = await nest(await nest(outer))
      await end(outer)
      expect(await now(inner)).toMatchObject({ status: 'cancelled' })
    }
  })

  test('an execution that only waits stops the time limits of those around it, and its next node lets them go on', async () => {
    const outer = await create()
    const middle = await nest(outer)
    const inner = await nest(middle)
    const areStopped = async () =>
      (await Promise.all([inner, middle, outer].map(now))).map(({ timeoutAt, remainingMs }) => {
        expect(timeoutAt === null).toBe(remainingMs !== null)
        return remainingMs !== null
      })
    await store.jobs.settle(await claim(inner), completed())
    expect(await areStopped()).toEqual([false, false, false])
    const { timeoutAt } = await now(inner)
    const at = timeoutAt! - 10_000
    await store.executions.setAside(organizationId, jobOf(inner, 1), { awaits: 'event', at })
    expect(await areStopped()).toEqual([true, true, true])
    await store.executions.expire(at + 1e9, 1_000)
    await store.executions.cancel(organizationId, inner.id, at + 1e9)
    // The node that has run it has still to be told of its end.
    expect(await areStopped()).toEqual([false, false, false])
    const { timeoutAt: later } = await now(outer)
    expect(later).toBeGreaterThan(at + 1e9)
    await store.executions.expire(later!, 1_000)
    expect(await now(outer)).toMatchObject({ status: 'timed_out' })
  })

  test('items that run executions wait, as a node does that runs one', async () => {
    const { modelId: _, ...outer } = newExecution({ nodes: { a: [] } })
    Object.assign(outer.nodes[0]!, {
      modelId: noModelId,
      direct: false,
      items: { parallel: 2, onError: 'fail', direct: true },
    })
    await store.executions.create(outer)
    await store.executions.expand(organizationId, jobOf(outer), { at: Date.now(), count: 2 })
    const shown = async () => {
      const { status, awaits, items } = await nodeOf(outer)
      const { progress } = await now(outer)
      return { status, awaits, waiting: items!.waiting, running: progress.running }
    }
    const items = await store.executions.items(organizationId, outer.id, { nodeId: 'a', after: -1, limit: 9 })
    const inner: NewExecution[] = []
    for (const { jobId } of items) {
      expect(await shown()).toMatchObject({ status: inner.length === 0 ? 'ready' : 'running', waiting: inner.length })
      inner.push(await create({ parentJob: { id: jobId! } }))
    }
    const waits = { status: 'waiting', awaits: 'execution', waiting: 2, running: 0 }
    expect(await shown()).toEqual(waits)
    await store.executions.setAside(organizationId, jobOf(inner[0]!), { awaits: 'event', at: Date.now() })
    expect(await shown()).toEqual(waits)
    // Until its item is told of its end.
    await store.executions.cancel(organizationId, inner[0]!.id, Date.now())
    expect(await shown()).toEqual(waits)
    const query = { nodeId: 'a', after: -1, limit: 9, status: 'waiting' } as const
    expect(await store.executions.items(organizationId, outer.id, query)).toHaveLength(2)
    await store.executions.cancel(organizationId, outer.id, Date.now())
    expect(await shown()).toMatchObject({ status: 'cancelled', waiting: 0, running: 0 })
  })

  test('executions are nested at most five deep', async () => {
    let outer = await create()
    for (let depth = 1; depth <= 5; depth++) outer = await nest(outer)
    await expect(nest(outer)).rejects.toMatchObject({ code: 'invalid_value', message: /at most 5 deep/ })
    expect(await nodeOf(outer)).toMatchObject({ status: 'ready' })
  })
}
