import { describe, expect, test } from 'vitest'
import type { JobRecord } from '../../../core/store/store.ts'
import type { CommitEffects } from '../../../core/store/workflows.ts'
import type { Subject } from './conformance.ts'
import { type Drawn, newExecution, newWorkflow } from './drawn.ts'
import { claimWaiting, completed, createOrganization, failed, newFile, newJob, organizationId } from './records.ts'

/** Workflows, their versions, their executions and the results of these. */
export async function workflowRules({ store }: Subject): Promise<void> {
  const effects: CommitEffects[] = []
  await createOrganization(store, 'org_other')
  store.onCommitted(one => void effects.push(one))

  /** An execution, and operations on its nodes by name. */
  async function begin(drawn: Drawn, more: Parameters<typeof newExecution>[1] = {}) {
    const { modelId, ...made } = newExecution(drawn, more)
    const { execution } = await store.executions.create(made)
    const jobOf = (node: string) => made.nodes.find(({ nodeId }) => nodeId === node)!.jobId
    const claim = async (node: string): Promise<JobRecord> => {
      const job = await store.jobs.claim(organizationId, jobOf(node), Date.now())
      expect(job, node).toBeDefined()
      return job!
    }
    return {
      id: execution.id,
      made,
      modelId,
      jobOf,
      claim,
      finish: async (node: string, more: object = {}) =>
        await store.jobs.settle(await claim(node), { ...completed(), ...more }),
      fail: async (node: string) => await store.jobs.settle(await claim(node), failed()),
      now: async () => {
        const found = (await store.executions.find(organizationId, execution.id))!
        const nodes = await store.executions.nodes(organizationId, execution.id)
        return { ...found, at: Object.fromEntries(nodes.map(({ nodeId, status }) => [nodeId, status])) }
      },
    }
  }
  const chain = { nodes: { a: ['b'], b: [] } }

  describe('workflows', () => {
    test('a stored one is read by its organization alone', async () => {
      const wanted = newWorkflow({ parameters: { n: { type: 'integer', default: 3 } } })
      const made = await store.workflows.create(wanted)
      expect(made).toEqual({ ...wanted, version: 1, updatedAt: wanted.createdAt })
      expect(await store.workflows.find(organizationId, wanted.id)).toEqual(made)
      expect(await store.workflows.find('org_other', wanted.id)).toBeUndefined()
      expect(await store.workflows.remove('org_other', wanted.id)).toBeUndefined()
      const change = { expected: undefined, at: 1 }
      expect(await store.workflows.update('org_other', wanted.id, { name: 'x' }, change)).toBeUndefined()
      expect(await store.workflows.find(organizationId, wanted.id)).toEqual(made)
    })

    test('every version is kept, and a change of an outdated version is refused', async () => {
      const first = await store.workflows.create(newWorkflow())
      const change = (name: string, expected?: number) =>
        store.workflows.update(organizationId, first.id, { name }, { expected, at: first.createdAt + 5 })
      expect(await change('two', 1)).toEqual({ ...first, name: 'two', version: 2, updatedAt: first.createdAt + 5 })
      await expect(change('three', 1)).rejects.toMatchObject({ code: 'version_conflict' })
      expect((await change('three'))!.version).toBe(3)
      const versions = await Promise.all([1, 2, 3, 4].map(at => store.workflows.find(organizationId, first.id, at)))
      expect(versions.map(one => one?.name)).toEqual(['A workflow', 'two', 'three', undefined])
      // Of two changes of the same version one comes first.
      const both = await Promise.allSettled([change('left', 3), change('right', 3)])
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      // Changes in one commit are answered each with its own version.
      const several = await Promise.all([change('five'), change('six')])
      expect(several.map(one => [one?.version, one?.name])).toEqual([
        [5, 'five'],
        [6, 'six'],
      ])
    })

    test('tags are kept with each version, and stay where a change has none', async () => {
      const { id } = await store.workflows.create(newWorkflow({ tags: ['daily'] }))
      const change = (fields: object) =>
        store.workflows.update(organizationId, id, fields, { expected: undefined, at: Date.now() })
      expect((await change({ name: 'other' }))?.tags).toEqual(['daily'])
      expect((await change({ tags: [] }))?.tags).toEqual([])
      expect((await store.workflows.find(organizationId, id, 1))?.tags).toEqual(['daily'])
    })

    test('pages have each one once, last changed first, without their graphs', async () => {
      const made = []
      for (let at = 0; at < 5; at++)
        made.push(
          await store.workflows.create(newWorkflow({ name: `Paged ${at}`, createdAt: 1_800_000_000_000 + (at >> 1) })),
        )
      const seen: string[] = []
      for (let after: string | undefined, more = true; more; ) {
        const page = await store.workflows.list(organizationId, {
          limit: 2,
          search: 'PAGED',
          ...(after ? { after } : {}),
        })
        seen.push(...page.workflows.map(({ id }) => id))
        for (const { dag } of page.workflows) expect(dag).toEqual({ nodes: {}, edges: [] })
        after = page.next ?? undefined
        more = page.next !== null
      }
      expect(seen).toHaveLength(5)
      expect(new Set(seen)).toEqual(new Set(made.map(({ id }) => id)))
      expect((await store.workflows.list('org_other', { limit: 10 })).workflows).toEqual([])
      await expect(store.workflows.list(organizationId, { limit: 2, after: 'nonsense' })).rejects.toMatchObject({
        code: 'invalid_value',
      })
    })

    test('lists have those with a tag, page by page', async () => {
      for (const [at, tags] of [['blue'], ['light "blue"'], ['blue', 'red'], []].entries())
        await store.workflows.create(newWorkflow({ tags, name: `Tagged ${at}`, createdAt: 1_900_000_000_000 + at }))
      const named = async (page: object) => {
        const { workflows, next } = await store.workflows.list(organizationId, { limit: 1, search: 'tagged', ...page })
        return { names: workflows.map(({ name }) => name), next }
      }
      const first = await named({ tag: 'blue' })
      expect(first.names).toEqual(['Tagged 2'])
      expect(await named({ tag: 'blue', after: first.next! })).toEqual({ names: ['Tagged 0'], next: null })
      expect((await named({ tag: 'light "blue"' })).names).toEqual(['Tagged 1'])
      expect((await named({ tag: 'blu' })).names).toEqual([])
    })

    test('one that is being executed cannot be deleted; its executions outlive it', async () => {
      const { id } = await store.workflows.create(newWorkflow())
      const run = await begin({ nodes: { a: [] } }, { workflowId: id, workflowVersion: 1 })
      await expect(store.workflows.remove(organizationId, id)).rejects.toMatchObject({ code: 'conflict' })
      await run.finish('a')
      expect(await store.workflows.remove(organizationId, id)).toBe(true)
      expect(await store.workflows.remove(organizationId, id)).toBeUndefined()
      expect((await run.now()).workflowId).toBe(id)
    })
  })

  describe('an execution', () => {
    test('starts a node when its predecessors have ended, and reports it after the commit', async () => {
      const run = await begin(chain)
      expect(await run.now()).toMatchObject({ status: 'pending', startedAt: null, at: { a: 'ready', b: 'pending' } })
      const released = effects.flatMap(one => one.released).filter(({ executionId }) => executionId === run.id)
      expect(released).toMatchObject([{ id: run.jobOf('a'), class: 'workflow' }])
      await run.claim('a')
      expect(await run.now()).toMatchObject({
        status: 'running',
        at: { a: 'running', b: 'pending' },
        progress: { running: 1 },
      })
      const job = (await store.jobs.find(organizationId, run.jobOf('a')))!
      expect(job.class).toBe('workflow')
      expect(job.parent).toEqual({ executionId: run.id, nodeId: 'a' })
      await store.jobs.settle(job, completed())
      expect(await run.now()).toMatchObject({
        at: { a: 'completed', b: 'ready' },
        progress: { running: 0, completed: 1 },
      })
      await run.finish('b')
      expect(await run.now()).toMatchObject({
        status: 'completed',
        at: { a: 'completed', b: 'completed' },
        progress: { total: 2, completed: 2, failed: 0, skipped: 0, running: 0, waiting: 0 },
        usage: { inputTokens: 6, outputTokens: 8 },
        cost: 14,
      })
      const events = await store.events.ofExecution(organizationId, { sequence: 0, executionId: run.id, limit: 100 })
      expect(events.map(({ type, nodeId }) => [type, nodeId])).toEqual([
        ['workflow_execution.created', null],
        ['job.created', 'a'],
        ['job.started', 'a'],
        ['workflow_execution.started', null],
        ['job.completed', 'a'],
        ['job.created', 'b'],
        ['job.started', 'b'],
        ['job.completed', 'b'],
        ['workflow_execution.completed', null],
      ])
    })

    test('belongs to its organization only', async () => {
      const run = await begin(chain)
      expect(await store.executions.find('org_other', run.id)).toBeUndefined()
      expect(await store.executions.summary('org_other', run.id)).toBeUndefined()
      expect(await store.executions.nodes('org_other', run.id)).toEqual([])
      expect(await store.executions.results('org_other', run.id, ['a'])).toEqual({})
      expect(await store.executions.cancel('org_other', run.id, 1)).toBeUndefined()
      expect(await store.executions.remove('org_other', run.id, 1)).toBeUndefined()
      expect(await store.events.ofExecution('org_other', { sequence: 0, executionId: run.id, limit: 9 })).toEqual([])
      expect((await run.now()).status).toBe('pending')
    })

    test('fails fast: waiting nodes are withdrawn in the same commit, those claimed in it continue', async () => {
      const run = await begin({ nodes: { bad: [], claimed: [], waits: [] } })
      const bad = await run.claim('bad')
      // One commit: the claim comes first.
      const [claimed, , late] = await Promise.all([
        store.jobs.claim(organizationId, run.jobOf('claimed'), Date.now()),
        store.jobs.settle(bad, failed()),
        store.jobs.claim(organizationId, run.jobOf('waits'), Date.now()),
      ])
      expect([claimed?.status, late]).toEqual(['processing', undefined])
      expect(await run.now()).toMatchObject({
        status: 'running',
        at: { bad: 'failed', claimed: 'running', waits: 'skipped' },
        progress: { failed: 1, running: 1, skipped: 1 },
      })
      await store.jobs.settle(claimed!, completed())
      expect(await run.now()).toMatchObject({
        status: 'failed',
        error: { code: 'node_failed', nodeId: 'bad', task: 'std/chat-completion', cause: { code: 'worker_error' } },
        progress: { failed: 1, running: 0, skipped: 1, completed: 1 },
      })
    })

    test('a retry of a node is no end', async () => {
      const run = await begin(chain)
      await store.jobs.settle(await run.claim('a'), failed(1))
      expect(await run.now()).toMatchObject({
        status: 'running',
        at: { a: 'ready' },
        progress: { running: 0, failed: 0 },
      })
      await store.jobs.release(await run.claim('a'), 0)
      expect(await run.now()).toMatchObject({ at: { a: 'ready' }, progress: { running: 0, waiting: 0 } })
      await run.finish('a')
      expect(await run.now()).toMatchObject({ at: { a: 'completed', b: 'ready' } })
    })

    test('a job that its owner cancels is a failure of the node, with that reason', async () => {
      const run = await begin({ nodes: { a: ['b'], b: [] } })
      await run.claim('a')
      await store.jobs.cancel(organizationId, run.jobOf('a'), Date.now())
      expect(await run.now()).toMatchObject({
        status: 'failed',
        at: { a: 'failed', b: 'skipped' },
        progress: { failed: 1, skipped: 1, running: 0, waiting: 0 },
        error: { nodeId: 'a', cause: { code: 'cancelled' } },
      })
      const [a] = await store.executions.nodes(organizationId, run.id)
      expect(a!.error).toMatchObject({ code: 'cancelled' })
      expect((await store.executions.results(organizationId, run.id, ['a'])).a!.error).toMatchObject({
        code: 'cancelled',
      })
    })

    test('cancelled, and later ends change nothing', async () => {
      const run = await begin({ nodes: { a: [], b: [], c: [], d: [] } })
      await run.finish('c')
      const a = await run.claim('a')
      effects.length = 0
      // Cancelled twice and settled, in one commit or in several: the first one counts.
      const [first, settled, second] = await Promise.all([
        store.executions.cancel(organizationId, run.id, Date.now()),
        store.jobs.settle(a, completed()),
        store.executions.cancel(organizationId, run.id, Date.now()),
      ])
      expect([first!.status, settled, second!.status]).toEqual(['cancelled', false, 'cancelled'])
      expect(await run.now()).toMatchObject({
        at: { a: 'cancelled', b: 'cancelled', c: 'completed', d: 'cancelled' },
        progress: { total: 4, completed: 1, skipped: 3, failed: 0, running: 0, waiting: 0 },
        usage: { inputTokens: 3, outputTokens: 4 },
      })
      expect(effects.flatMap(({ withdrawn }) => withdrawn.map(({ id }) => id)).toSorted()).toEqual(
        ['a', 'b', 'd'].map(run.jobOf).toSorted(),
      )
      expect(await claimWaiting(store, { modelId: run.modelId })).toEqual([])
    })

    test('a commit that ends several nodes announces the execution once, with what is next then', async () => {
      const run = await begin({ nodes: { a: ['c'], b: ['c'], c: ['d'], d: [] } })
      const claimed = [await run.claim('a'), await run.claim('b')]
      effects.length = 0
      await Promise.all(claimed.map(job => store.jobs.settle(job, completed())))
      const told = effects.flatMap(({ executions }) => executions)
      expect(told).toMatchObject([{ id: run.id, organizationId, ended: false, next: [run.modelId] }])
      await run.finish('c')
      effects.length = 0
      await run.finish('d')
      expect(effects.flatMap(({ executions }) => executions).at(-1)).toMatchObject({
        id: run.id,
        ended: true,
        next: [],
      })
    })

    test('has the times of its events', async () => {
      const run = await begin({ nodes: { a: [] } }, { createdAt: 1_000, timeoutMs: 50, retentionMs: 7 })
      const claim = await store.jobs.claim(organizationId, run.jobOf('a'), 2_000)
      expect(await run.now()).toMatchObject({ startedAt: 2_000, updatedAt: 2_000, timeoutAt: 2_050, finishedAt: null })
      await store.jobs.settle(claim!, completed(3_000))
      expect(await run.now()).toMatchObject({ startedAt: 2_000, updatedAt: 3_000, finishedAt: 3_000, expiresAt: 3_007 })
      await store.executions.remove(organizationId, run.id, 3_000)
    })

    test('cannot be cancelled after its end', async () => {
      const run = await begin({ nodes: { a: [] } })
      await run.finish('a')
      await expect(store.executions.cancel(organizationId, run.id, 1)).rejects.toMatchObject({
        code: 'execution_already_finished',
      })
    })

    test('ends when its time is over, which begins with its first node', async () => {
      const run = await begin({ nodes: { a: [], b: [] } }, { timeoutMs: 1000 })
      const far = Date.now() + 1_000_000
      expect((await store.executions.expire(far, 10)).map(({ id }) => id)).not.toContain(run.id)
      await run.claim('a')
      const { timeoutAt } = await run.now()
      expect(await store.executions.nextDue()).toBeLessThanOrEqual(timeoutAt!)
      expect((await store.executions.expire(far, 10)).map(({ id }) => id)).toContain(run.id)
      expect(await run.now()).toMatchObject({
        status: 'timed_out',
        error: { code: 'timeout' },
        at: { a: 'timed_out', b: 'cancelled' },
        progress: { failed: 1, skipped: 1, running: 0, waiting: 0 },
      })
      expect(await store.executions.expire(far, 10)).toEqual([])
    })

    test('one key makes one execution', async () => {
      const idempotency = { key: `key-${Math.random()}`, bodyHash: 'one' }
      const { modelId: _, ...first } = newExecution(chain, { idempotency })
      const made = await store.executions.create(first)
      const again = await store.executions.create({ ...newExecution(chain), idempotency })
      expect([made.replayed, again.replayed, again.execution.id]).toEqual([false, true, first.id])
      await expect(
        store.executions.create({ ...newExecution(chain), idempotency: { ...idempotency, bodyHash: 'two' } }),
      ).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    })
  })

  describe('results', () => {
    test('are reused, once, by a waiting node', async () => {
      const first = await begin({ nodes: { a: [] } })
      await first.finish('a', { cacheKey: 'the same' })
      expect(await store.executions.cached(organizationId, 'the same')).toBe(first.jobOf('a'))
      expect(await store.executions.cached('org_other', 'the same')).toBeUndefined()
      const second = await begin(chain)
      const from = { jobId: first.jobOf('a'), at: Date.now() }
      expect(await store.executions.reuse(organizationId, second.jobOf('a'), from)).toBe(true)
      expect(await store.executions.reuse(organizationId, second.jobOf('a'), from)).toBe(false)
      expect(await store.executions.reuse(organizationId, second.jobOf('b'), { ...from, jobId: 'job_none' })).toBe(
        false,
      )
      expect(await second.now()).toMatchObject({ at: { a: 'completed', b: 'ready' }, progress: { completed: 1 } })
      const [a] = await store.executions.nodes(organizationId, second.id)
      expect(a).toMatchObject({ cached: true, attempts: 0, jobId: first.jobOf('a') })
      expect((await store.executions.results(organizationId, second.id, ['a'])).a!.result).toBe('{"ok":true}')
      await store.executions.cancel(organizationId, second.id, Date.now())
    })

    test('not by one that runs or has been cancelled meanwhile', async () => {
      const first = await begin({ nodes: { a: [] } })
      await first.finish('a')
      const second = await begin({ nodes: { a: [], b: [] } })
      const from = { jobId: first.jobOf('a'), at: Date.now() }
      await second.claim('a')
      expect(await store.executions.reuse(organizationId, second.jobOf('a'), from)).toBe(false)
      const [, reused] = await Promise.all([
        store.executions.cancel(organizationId, second.id, Date.now()),
        store.executions.reuse(organizationId, second.jobOf('b'), from),
      ])
      expect([reused, (await second.now()).at]).toEqual([false, { a: 'cancelled', b: 'cancelled' }])
    })

    test('are not found when one of their files is removed', async () => {
      const run = await begin({ nodes: { a: [] } })
      const file = newFile({ jobId: run.jobOf('a') })
      await run.finish('a', { cacheKey: 'with a file', files: [file] })
      expect(await store.executions.cached(organizationId, 'with a file')).toBe(run.jobOf('a'))
      await store.files.remove(organizationId, file.id, Date.now())
      expect(await store.executions.cached(organizationId, 'with a file')).toBeUndefined()
    })

    test('outlive the execution that made them while another one uses them', async () => {
      const first = await begin({ nodes: { a: [], b: [] } })
      await first.finish('a', { cacheKey: 'kept' })
      await expect(store.executions.remove(organizationId, first.id, 1)).rejects.toMatchObject({ code: 'conflict' })
      await first.finish('b', { cacheKey: 'dropped' })
      const second = await begin({ nodes: { a: ['b'], b: [] }, reuses: { a: first.jobOf('a') } })
      expect((await second.now()).at).toEqual({ a: 'completed', b: 'ready' })
      expect(await store.executions.remove(organizationId, first.id, Date.now())).toBe(true)
      expect(await store.executions.remove(organizationId, first.id, Date.now())).toBeUndefined()
      expect(await store.jobs.find(organizationId, first.jobOf('b'))).toBeUndefined()
      expect((await store.executions.results(organizationId, second.id, ['a'])).a!.result).toBe('{"ok":true}')
      expect(await store.executions.cached(organizationId, 'kept')).toBe(first.jobOf('a'))
      expect(await store.executions.cached(organizationId, 'dropped')).toBeUndefined()
      await second.finish('b')
      expect(await second.now()).toMatchObject({ status: 'completed', usage: { inputTokens: 3 } })
      await store.executions.remove(organizationId, second.id, Date.now())
      expect(await store.jobs.find(organizationId, first.jobOf('a'))).toBeUndefined()
      expect(await store.executions.cached(organizationId, 'kept')).toBeUndefined()
    })

    test('that were deleted meanwhile are not reused', async () => {
      await expect(begin({ nodes: { a: [] }, reuses: { a: 'job_gone' } })).rejects.toMatchObject({ code: 'conflict' })
    })

    test('reused for every node end the execution', async () => {
      const first = await begin({ nodes: { a: [] } })
      await first.finish('a')
      const second = await begin({ nodes: { a: [] }, reuses: { a: first.jobOf('a') } })
      expect((await second.now()).status).toBe('completed')
    })

    test('a job of an execution is only deleted with it', async () => {
      const run = await begin({ nodes: { a: [] } })
      await run.finish('a')
      await expect(store.jobs.remove(organizationId, run.jobOf('a'), 1)).rejects.toMatchObject({ code: 'conflict' })
    })
  })

  test('executions are deleted when their time is over, not before and not while they run', async () => {
    const [old, young, forever, going] = await Promise.all([
      begin({ nodes: { a: [] } }, { retentionMs: 10 }),
      begin({ nodes: { a: [] } }, { retentionMs: 10_000_000 }),
      begin({ nodes: { a: [] } }),
      begin({ nodes: { a: [] } }, { retentionMs: 10 }),
    ])
    for (const run of [old, young, forever]) await run.finish('a')
    expect(await store.executions.sweep(Date.now() + 1_000_000, 10)).toBe(1)
    expect(await store.executions.find(organizationId, old.id)).toBeUndefined()
    expect(await store.jobs.find(organizationId, old.jobOf('a'))).toBeUndefined()
    for (const run of [young, forever, going]) expect(await run.now()).toBeDefined()
  })

  test('executions are listed newest first, by workflow, status, time and metadata', async () => {
    const made: Awaited<ReturnType<typeof begin>>[] = []
    for (let at = 0; at < 5; at++)
      made.push(
        await begin(
          { nodes: { a: [] } },
          { workflowId: 'wf_listed', createdAt: 5_000 + at, metadata: `{"n":"${at % 2}"}` },
        ),
      )
    await made[0]!.finish('a')
    const list = async (more: object) =>
      (await store.executions.list(organizationId, { limit: 10, workflowId: 'wf_listed', ...more })).executions.map(
        ({ id }) => made.findIndex(one => one.id === id),
      )
    expect(await list({})).toEqual([4, 3, 2, 1, 0])
    expect(await list({ status: 'completed' })).toEqual([0])
    expect(await list({ createdAfter: 5_003 })).toEqual([4, 3])
    expect(await list({ metadata: { n: '1' } })).toEqual([3, 1])
    const first = await store.executions.list(organizationId, { limit: 2, workflowId: 'wf_listed' })
    expect(await list({ after: first.next! })).toEqual([2, 1, 0])
    expect(first.executions[0]!.definition.dag).toEqual({ nodes: {}, edges: [] })
  })

  test('a failed command rolls back none of the others in its commit', async () => {
    const run = await begin(chain)
    const job = await run.claim('a')
    const clash = newJob()
    await store.jobs.submit(clash)
    const both = await Promise.allSettled([
      store.jobs.settle(job, completed()),
      store.jobs.submit(clash),
      store.executions.cancel(organizationId, (await begin({ nodes: { a: [] } })).id, 1),
    ])
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await run.now()).toMatchObject({ at: { a: 'completed', b: 'ready' }, progress: { completed: 1 } })
  })
}
