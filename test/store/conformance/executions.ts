import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExecutionInput } from '../../../core/dag/advance.ts'
import { advanceState } from '../../../core/dag/advance-state.ts'
import { type ExecutionState, isOver, newState } from '../../../core/dag/execution-state.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { newExecution } from './drawn.ts'
import { completed, failed, newJob, organizationId } from './records.ts'

/** For commands in any order, some of them rolled back, the stored execution equals that of core/dag. */
export function executionRules({ store }: Subject): void {
  const { error } = failed()
  const letters = 'abcdefghij'.split('')
  const graphs = fc.record({
    size: fc.integer({ min: 1, max: letters.length }),
    edges: fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 20, size: 'max' }),
    borne: fc.subarray(letters),
    onFailure: fc.constantFrom('fail_fast' as const, 'continue' as const),
  })
  /** A command on a node, and whether another command of the same commit fails. */
  const deeds = fc.array(
    fc.record({
      pick: fc.nat(),
      deed: fc.constantFrom(
        'claim',
        'complete',
        'complete',
        'fail',
        'retry',
        'release',
        'cancel job',
        'set aside',
        'set aside claimed',
        'resolve',
        'again' as const,
      ),
      undone: fc.boolean(),
    }),
    { minLength: 5, maxLength: 60, size: 'max' },
  )

  test('any graph, any order of claims and ends, some commits rolled back: the store has the state of the rules', async () => {
    const taken = newJob()
    await store.jobs.submit(taken)
    const property = fc.asyncProperty(
      graphs,
      deeds,
      fc.option(fc.constantFrom('cancelled' as const, 'timed_out' as const)),
      async ({ size, edges, borne, onFailure }, does, stop) => {
        const names = letters.slice(0, size)
        const nodes = Object.fromEntries(
          names.map((name, from) => [
            name,
            [...new Set(edges.filter(([a, b]) => a === from && a < b && b < size).map(([, to]) => letters[to]!))],
          ]),
        )
        const { modelId: _, ...made } = newExecution({ nodes, borne, onFailure })
        const plan = { nodes: made.nodes, onFailure, timeoutMs: made.timeoutMs }
        await store.executions.create(made)
        const state = newState(plan)
        const heed = (input: ExecutionInput) => advanceState(plan, state, input)
        heed({ type: 'created', at: made.createdAt })
        const claims = new Map<number, JobRecord>()

        /** The command, in one commit with one that fails if requested. */
        async function commit<T>(command: Promise<T>, undone: boolean): Promise<T> {
          if (undone) await expect(store.jobs.submit(taken)).rejects.toThrow()
          return command
        }
        const jobOf = (node: number) => made.nodes[node]!.jobId

        for (const { pick, deed, undone } of does) {
          const live = [...state.nodes.keys()].filter(node => !isOver(state.nodes[node]!))
          if (live.length === 0) break
          const node = live[pick % live.length]!
          const now = state.nodes[node]!
          const claim = claims.get(node)
          if (deed === 'claim') {
            const claimed = await commit(store.jobs.claim(organizationId, jobOf(node), Date.now()), undone)
            expect(claimed !== undefined).toBe(now === 'ready')
            if (!claimed) continue
            claims.set(node, claimed)
            heed({ type: 'job_started', node, at: Date.now() })
          } else if (deed === 'cancel job') {
            if (now === 'pending') continue
            await commit(store.jobs.cancel(organizationId, jobOf(node), Date.now()), undone)
            const how = { ran: now === 'running', waited: now === 'waiting' }
            heed({ type: 'job_ended', node, status: 'cancelled', ...how, at: Date.now() })
          } else if (deed === 'set aside') {
            const at = Date.now()
            const aside = store.executions.setAside(organizationId, jobOf(node), { awaits: 'event', at })
            expect(await commit(aside, undone)).toBe(now === 'ready')
            if (now === 'ready') heed({ type: 'job_set_aside', node, at })
          } else if (deed === 'resolve') {
            const at = Date.now()
            const wanted = { awaits: 'event', at, ...(pick % 3 === 0 ? { error } : { result: '{}' }) } as const
            const twice = store.executions.resolve(organizationId, jobOf(node), wanted)
            const resolved = await commit(store.executions.resolve(organizationId, jobOf(node), wanted), undone)
            expect([await twice, resolved]).toEqual([now === 'waiting', false])
            const status = pick % 3 === 0 ? 'failed' : 'completed'
            if (now === 'waiting') heed({ type: 'job_ended', node, status, ran: false, waited: true, at })
          } else if (claim && now === 'running') {
            if (deed === 'set aside claimed') {
              const at = Date.now()
              const { boot, claims: count } = claim
              const how = { awaits: 'event', at, inputs: '{}', claim: { boot, claims: count } } as const
              expect(await commit(store.executions.setAside(organizationId, jobOf(node), how), undone)).toBe(true)
              heed({ type: 'job_requeued', node, at })
              heed({ type: 'job_set_aside', node, at })
            } else if (deed === 'retry' || deed === 'release') {
              const back = deed === 'retry' ? store.jobs.settle(claim, failed(1)) : store.jobs.release(claim, 0)
              await commit<unknown>(back, undone)
              heed({ type: 'job_requeued', node, at: Date.now() })
            } else {
              const outcome = deed === 'fail' ? failed(null) : completed()
              // Repeated in one commit, it counts once.
              const twice = deed === 'again' ? store.jobs.settle(claim, outcome) : undefined
              const settled = await commit(store.jobs.settle(claim, outcome), undone)
              expect([(await twice) ?? true, settled]).toEqual([true, twice === undefined])
              heed({ type: 'job_ended', node, status: outcome.status, ran: true, at: Date.now() })
            }
          }
          await compare(made.id, state)
        }
        if (stop && state.open > 0 && (stop === 'cancelled' || state.clock.timeoutAt !== null)) {
          if (stop === 'cancelled') await store.executions.cancel(organizationId, made.id, Date.now())
          else await store.executions.expire(Date.now() + 10_000_000, 1_000)
          heed({ type: stop, at: Date.now() })
          // Later commands find it ended.
          for (const claim of claims.values()) await store.jobs.settle(claim, completed())
        }
        await compare(made.id, state)
        if (!['pending', 'running'].includes(state.status))
          await store.executions.remove(organizationId, made.id, Date.now())
        else await store.executions.cancel(organizationId, made.id, Date.now())
      },
    )
    const of = (pick: number, deed: 'claim' | 'cancel job' | 'retry' | 'set aside', undone = false) => ({
      pick,
      deed,
      undone,
    })
    // Set aside after a failure, first undone: the state is read anew.
    const stopped = [of(0, 'claim'), of(1, 'cancel job'), of(0, 'retry'), of(0, 'set aside', true), of(0, 'claim')]
    await fc.assert(property, {
      numRuns: Number(process.env.RUNS ?? 40),
      examples: [[{ size: 2, edges: [], borne: [], onFailure: 'fail_fast' }, stopped, null]],
    })
  })

  async function compare(id: string, { nodes, status, clock }: ExecutionState): Promise<void> {
    const execution = (await store.executions.summary(organizationId, id))!
    const held = (await store.executions.nodes(organizationId, id)).map(node => node.status)
    expect([execution.status, held]).toEqual([status, nodes])
    expect(execution.remainingMs === null).toBe(clock.remainingMs === null)
    const many = (...those: string[]) => nodes.filter(node => those.includes(node)).length
    expect(execution.progress).toEqual({
      total: nodes.length,
      completed: many('completed'),
      failed: many('failed', 'timed_out'),
      skipped: many('skipped', 'cancelled'),
      running: many('running'),
      waiting: many('waiting'),
    })
  }
}
