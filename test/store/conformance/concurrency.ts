import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Concurrency } from '../../../core/dag/concurrency.ts'
import type { Store } from '../../../core/store/store.ts'
import type { NewExecution } from '../../../core/store/workflows.ts'
import type { Subject } from './conformance.ts'
import { newExecution, newWorkflow } from './drawn.ts'
import { completed, organizationId } from './records.ts'

/** Executions of a workflow that limits how many run at once. */
export function concurrencyRules({ store, fresh }: Subject): void {
  async function limited(concurrency: Concurrency, own: Store = store) {
    const workflow = await own.workflows.create(newWorkflow({ concurrency }))
    const begin = async (more: Partial<NewExecution> = {}) => {
      const made = executionOf(workflow.id, more)
      await own.executions.create(made)
      return made
    }
    return { id: workflow.id, begin }
  }
  function executionOf(workflowId: string, more: Partial<NewExecution> = {}) {
    const { modelId: _, ...made } = newExecution({ nodes: { a: [] } }, { workflowId, workflowVersion: 1, ...more })
    return made
  }
  const stateOf = async ({ id }: NewExecution, own: Store = store) => {
    const { status, queued, queuePosition } = (await own.executions.summary(organizationId, id))!
    return queued ? `${status}, ${queuePosition} before` : status
  }
  const statesOf = (those: NewExecution[], own?: Store) => Promise.all(those.map(one => stateOf(one, own)))
  async function finish(execution: NewExecution, own: Store = store): Promise<void> {
    const job = await own.jobs.claim(organizationId, execution.nodes[0]!.jobId, Date.now())
    expect(job, 'it runs').toBeDefined()
    await own.jobs.settle(job!, completed())
  }

  test('executions beyond the limit wait in the order of creation, with priority, and start as others end', async () => {
    const { begin } = await limited({ limit: 1, when_reached: 'queue' })
    const [a, b, c, urgent] = [await begin(), await begin(), await begin(), await begin({ priority: 10 })]
    const all = [a, b, c, urgent]
    expect(await statesOf(all)).toEqual(['pending', 'pending, 1 before', 'pending, 2 before', 'pending, 0 before'])
    expect(await store.executions.nodes(organizationId, b.id)).toMatchObject([{ status: 'pending', jobId: null }])
    const { executions } = await store.executions.list(organizationId, { limit: 1, workflowId: a.workflowId! })
    expect(executions[0]).toMatchObject({ queued: true, queuePosition: null })
    await finish(a)
    expect(await statesOf(all)).toEqual(['completed', 'pending, 0 before', 'pending, 1 before', 'pending'])
    await store.executions.cancel(organizationId, urgent.id, Date.now())
    await store.executions.cancel(organizationId, c.id, Date.now())
    await finish(b)
    expect(await statesOf(all)).toEqual(['completed', 'completed', 'cancelled', 'cancelled'])
  })

  test('a limit that is reached refuses an execution, and its idempotency key can be used again', async () => {
    const { begin, id } = await limited({ limit: 1, when_reached: 'refuse' })
    const first = await begin()
    const idempotency = { key: `key of ${id}`, bodyHash: 'hash' }
    await expect(begin({ idempotency })).rejects.toMatchObject({ code: 'conflict' })
    await finish(first)
    expect(await stateOf(await begin({ idempotency }))).toBe('pending')
  })

  test('a limit that is reached cancels the oldest execution', async () => {
    const { begin } = await limited({ limit: 2, when_reached: 'cancel_oldest' })
    const all = [await begin(), await begin(), await begin()]
    expect(await statesOf(all)).toEqual(['cancelled', 'pending', 'pending'])
  })

  test('a nested execution that would wait for those around it for ever is refused, with the names of both', async () => {
    const named = async (name: string, limit: number) =>
      (await store.workflows.create(newWorkflow({ name, concurrency: { limit, when_reached: 'queue' } }))).id
    const nested = (workflowId: string, outer: NewExecution) =>
      executionOf(workflowId, { parentJob: { id: outer.nodes[0]!.jobId } })
    const [a, b] = [await named('A', 1), await named('B', 2)]
    const begin = async (execution: NewExecution) => (await store.executions.create(execution), execution)
    const [inA, inB, otherInB] = [executionOf(a), executionOf(b), executionOf(b)]
    for (const one of [inA, inB, otherInB]) await begin(one)
    const waits = await begin(nested(b, inA))
    expect(await stateOf(waits)).toBe('pending, 0 before')
    // Another execution of B can still end.
    const alsoWaits = await begin(nested(a, inB))
    expect(await stateOf(alsoWaits)).toBe('pending, 0 before')
    const refused = store.executions.create(nested(a, otherInB))
    await expect(refused).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/^The workflow 'A' can never start here: .* wait for one of 'B',/) as string,
    })
    expect(await store.executions.nodes(organizationId, otherInB.id)).toMatchObject([{ status: 'ready' }])
    await finish(otherInB)
    expect(await statesOf([waits, alsoWaits])).toEqual(['pending', 'pending, 0 before'])
    for (const one of [inA, inB]) await store.executions.cancel(organizationId, one.id, Date.now())
  })

  test('a raised limit starts executions that wait; without one all start', async () => {
    const { begin, id } = await limited({ limit: 1, when_reached: 'queue' })
    const all = [await begin(), await begin(), await begin(), await begin()]
    const change = (concurrency: Concurrency | null) =>
      store.workflows.update(organizationId, id, { concurrency }, { expected: undefined, at: Date.now() })
    await change({ limit: 2, when_reached: 'queue' })
    expect(await statesOf(all)).toEqual(['pending', 'pending', 'pending, 0 before', 'pending, 1 before'])
    await change(null)
    expect(await statesOf(all)).toEqual(['pending', 'pending', 'pending', 'pending'])
    expect(await stateOf(await begin())).toBe('pending')
  })

  test('executions that wait do so after a restart, and start when others end', async () => {
    await using other = await fresh()
    const { begin } = await limited({ limit: 1, when_reached: 'queue' }, other.store)
    const all = [await begin(), await begin()]
    await other.store.close()
    const again = await other.place.open()
    try {
      expect(await statesOf(all, again)).toEqual(['pending', 'pending, 0 before'])
      await finish(all[0]!, again)
      expect(await statesOf(all, again)).toEqual(['completed', 'pending'])
    } finally {
      await again.close()
    }
  })

  test('of 50 executions that are created at once never more than the limit run, and all complete', async () => {
    const limit = 7
    const { id } = await limited({ limit, when_reached: 'queue' })
    const made = Array.from({ length: 50 }, () => executionOf(id))
    const ids = new Set(made.map(one => one.id))
    const done = Promise.withResolvers<void>()
    let [running, peak, ended] = [0, 0, 0]
    store.onCommitted(({ released, executions }) => {
      // Ends first: one that has ended makes room for another in the same commit.
      const over = executions.filter(one => one.ended && ids.has(one.id)).length
      running -= over
      ended += over
      for (const { id: jobId, executionId } of released) {
        if (!ids.has(executionId)) continue
        peak = Math.max(peak, ++running)
        void store.jobs
          .claim(organizationId, jobId, Date.now())
          .then(job => store.jobs.settle(job!, completed()))
          .catch(done.reject)
      }
      if (ended === made.length) done.resolve()
    })
    await Promise.all(made.map(one => store.executions.create(one)))
    await done.promise
    expect({ peak, running }).toEqual({ peak: limit, running: 0 })
    expect(new Set(await statesOf(made))).toEqual(new Set(['completed']))
  })

  test('any order of creations, ends and cancellations: the limit holds, and nothing waits for ever', async () => {
    const deeds = fc.array(
      fc.record({ deed: fc.constantFrom('create', 'create', 'finish', 'cancel' as const), pick: fc.nat() }),
      { minLength: 5, maxLength: 30, size: 'max' },
    )
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 3 }), deeds, async (limit, does) => {
      const { begin } = await limited({ limit, when_reached: 'queue' })
      const made: NewExecution[] = []
      const open = async () => {
        const states = await statesOf(made)
        const starts = made.filter((_, at) => states[at] === 'pending')
        const waits = made.filter((_, at) => states[at]!.startsWith('pending,'))
        expect(starts.length).toBe(Math.min(limit, starts.length + waits.length))
        return { starts, waits }
      }
      for (const { deed, pick } of does) {
        const { starts, waits } = await open()
        const all = [...starts, ...waits]
        if (deed === 'create') made.push(await begin({ priority: pick % 3 }))
        else if (deed === 'finish' && starts.length > 0) await finish(starts[pick % starts.length]!)
        else if (deed === 'cancel' && all.length > 0)
          await store.executions.cancel(organizationId, all[pick % all.length]!.id, Date.now())
      }
      for (let { starts } = await open(); starts.length > 0; { starts } = await open()) await finish(starts[0]!)
    })
    await fc.assert(property, { numRuns: Number(process.env.RUNS ?? 10) })
  })
}
