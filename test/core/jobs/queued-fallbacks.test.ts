import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import type { FallbackOfJob } from '../../../core/jobs/job-fallbacks.ts'
import { type Jobs, type JobsOptions, openJobs } from '../../../core/jobs/jobs.ts'
import { openQueuedFallbacks } from '../../../core/jobs/queued-fallbacks.ts'
import { Model } from '../../../core/models/model.ts'
import type { JobRecord, Store, WaitingJobDetails } from '../../../core/store/store.ts'
import { keptLog, newJob, openTestStore, organizationId, type TestStore } from '../store/_store.ts'
import { slotsOnly } from './_fleet.ts'
import { byHand } from './_runs.ts'

/** Jobs that leave the queue of a model for one of its fallbacks. */
const minute = 60_000
const modelId = 'tiny-chat'
const ofToken =
  (tokenId: string): FallbackOfJob =>
  async job =>
    job.tokenId === tokenId
      ? { modelId: 'other', reason: 'wait', held: 0, begin: () => true, moved: () => {}, dropped: () => {} }
      : undefined
const modelWith = (fallback: object) => Model.parse({ id: modelId, fallbacks: [{ model: 'other', ...fallback }] })

describe('in the store', () => {
  let opened: TestStore
  let store: Store
  let slots: ReturnType<typeof slotsOnly>
  let log: ReturnType<typeof keptLog>
  beforeEach(async () => {
    opened = await openTestStore()
    store = opened.store
    log = keptLog()
    slots = slotsOnly()
    slots.setSlots(modelId, 0)
  })
  afterEach(async () => {
    await opened[Symbol.asyncDispose]()
    expect(log.lines.filter(line => line.includes('"level":"error"'))).toEqual([])
  })

  const find = (id: string) => store.jobs.find(organizationId, id) as Promise<JobRecord>
  const open = (more: Partial<JobsOptions>): Jobs =>
    openJobs({
      store,
      fleet: slots.fleet,
      models: { find: id => (id === modelId ? modelWith({ when: [], wait: '30s' }) : slots.models.find(id)) },
      weightOf: () => 1,
      run: byHand().run,
      fallbackOf: ofToken('tok_may'),
      log: log.log,
      tickMs: 10,
      ...more,
    })
  const old = (tokenId: string, at: number) => newJob({ tokenId, createdAt: Date.now() - 5 * minute + at })

  test('a late job leaves although more jobs that no fallback may do are before it than memory holds', async () => {
    await store.jobs.submitAll(Array.from({ length: 600 }, (_, at) => old('tok_not', at)))
    const { job } = await store.jobs.submit(old('tok_may', 1_000))
    const jobs = open({})
    await expect.poll(() => find(job.id)).toMatchObject({ modelId: 'other', fallbackReason: 'wait' })
    // The job counts for its new model alone.
    expect(jobs.queueForecast(modelId).waiting).toBe(600)
    await jobs.drain(0)
  })

  test('a late job leaves although other jobs occupy all slots', async () => {
    const hand = byHand()
    const jobs = open({ run: hand.run, slots: 1, slotsPerModel: 1 })
    await jobs.submit(newJob({ modelId: 'busy' }))
    await hand.begun(1)
    const { job } = await jobs.submit(old('tok_may', 0))
    await expect.poll(() => find(job.id)).toMatchObject({ modelId: 'other', status: 'pending' })
    expect(jobs.stats().running).toBe(1)
    await jobs.drain(0)
  })
})

describe('with a bounded number of looks', () => {
  const failure = (failed_starts?: number) =>
    new Failure('model_load_failed', 'It ends.', failed_starts === undefined ? {} : { facts: { failed_starts } })

  /** Jobs in memory, of lanes by their organization. */
  function setUp({ fallback = {}, may = () => true }: { fallback?: object; may?: (id: string) => boolean } = {}) {
    let now = 10 * minute
    let refusal: Failure | undefined
    const jobs: WaitingJobDetails[] = []
    const arrived = new Map<string, number>()
    const counts = { rows: 0, reads: 0, asked: 0 }
    const gone: string[] = []
    const isWaiting = ({ id }: { id: string }) => !gone.includes(id)
    const add = (id: string, more: Partial<WaitingJobDetails> = {}) => {
      const rank = more.rank ?? jobs.length
      const common = { modelId, organizationId: 'org_a', class: 'async', maxAttempts: 3, fallbackReason: null } as const
      const job = { ...common, id, since: now, ...more, rank }
      arrived.set(job.organizationId, (arrived.get(job.organizationId) ?? 0) + 1)
      jobs.push(job)
      jobs.sort((a, b) => a.rank - b.rank)
    }
    const fallbacks = openQueuedFallbacks({
      queue: {
        models: () => [modelId],
        lanesOf: () =>
          Array.from(arrived, ([organization, count]) => ({
            modelId,
            class: 'async' as const,
            organizationId: organization,
            lane: jobs,
            arrived: count,
          })).filter(lane => jobs.some(job => job.organizationId === lane.organizationId && isWaiting(job))),
      },
      store: {
        find: async (_, id) => ({ ...jobs.find(job => job.id === id)!, status: 'pending' }) as never,
        async waitingDetails({ organizationId: organization, from, limit }) {
          const found = jobs.filter(job => job.organizationId === organization && job.rank >= from && isWaiting(job))
          counts.reads++
          counts.rows += Math.min(found.length, limit)
          return found.slice(0, limit)
        },
      },
      find: () => modelWith(fallback),
      activity: slotsOnly().fleet.activity,
      async fallbackOf({ id }) {
        counts.asked++
        return may(id) ? ({ modelId: 'other' } as never) : undefined
      },
      clock: { now: () => now },
      refusal: () => refusal,
      giveUp({ id }) {
        gone.push(id)
        return true
      },
      log: keptLog().log,
    })
    return {
      add,
      gone,
      /** One tick; resolves with what it has cost. */
      tick: async ({ later = 1_000, refused }: { later?: number; refused?: Failure } = {}) => {
        now += later
        refusal = refused
        Object.assign(counts, { rows: 0, reads: 0, asked: 0 })
        fallbacks.tick()
        await nextTurn()
        return { ...counts }
      },
    }
  }

  test('jobs with more attempts than starts have failed are read once, and again when enough have failed', async () => {
    const { add, gone, tick } = setUp()
    for (let at = 0; at < 100; at++) add(`job${at}`, { maxAttempts: at === 50 ? 2 : 5 })
    expect((await tick({ refused: failure(1) })).rows).toBe(100)
    for (let at = 0; at < 30; at++) expect(await tick({ refused: failure(1) })).toEqual({ rows: 0, reads: 0, asked: 0 })
    expect(gone).toEqual([])
    await tick({ refused: failure(2) })
    expect(gone).toEqual(['job50'])
    // A new job is read, with the last one of those before: others may have its rank.
    add('new', { maxAttempts: 1 })
    expect((await tick({ refused: failure(2) })).rows).toBe(2)
    expect(gone).toEqual(['job50', 'new'])
  })

  test('an urgent job that arrives before those that were read is seen within ten seconds', async () => {
    const { add, gone, tick } = setUp()
    for (let at = 0; at < 10; at++) add(`job${at}`, { maxAttempts: 5 })
    await tick({ refused: failure(1) })
    add('urgent', { maxAttempts: 1, rank: -1_000 })
    for (let at = 0; at < 11; at++) await tick({ refused: failure(1) })
    expect(gone).toEqual(['urgent'])
  })

  test('a tick reads and asks a bounded number, and the next one continues', async () => {
    const { add, gone, tick } = setUp({ may: id => id === 'last' })
    for (let at = 0; at < 5_000; at++) add(`job${at}`)
    add('last')
    let ticks = 0
    for (; gone.length === 0 && ticks < 200; ticks++) {
      const { rows, asked } = await tick({ refused: failure() })
      expect(rows).toBeLessThanOrEqual(512)
      expect(asked).toBeLessThanOrEqual(64)
    }
    expect([gone, ticks]).toEqual([['last'], Math.ceil(5_001 / 64)])
  })

  test('an organization with many jobs that no fallback may do holds up no other', async () => {
    const { add, gone, tick } = setUp({ may: id => id === 'other' })
    for (let at = 0; at < 1_000; at++) add(`job${at}`)
    add('other', { organizationId: 'org_b' })
    await tick({ refused: failure() })
    await tick({ refused: failure() })
    expect(gone).toEqual(['other'])
  })

  test('a job is late by the time since it waits, and those that are not are read every ten seconds at most', async () => {
    const { add, gone, tick } = setUp({ fallback: { when: [], wait: '30s' } })
    for (let at = 0; at < 100; at++) add(`job${at}`)
    await tick()
    let rows = 0
    for (let at = 0; at < 28; at++) rows += (await tick()).rows
    expect(rows).toBe(200)
    expect(gone).toEqual([])
    await tick({ later: 2_000 })
    await tick()
    expect(gone).toHaveLength(100)
  })

  test('a model that serves again keeps its jobs, and the next refusal looks at all of them', async () => {
    const { add, gone, tick } = setUp()
    for (let at = 0; at < 3; at++) add(`job${at}`, { maxAttempts: 2 })
    await tick({ refused: failure(1) })
    expect(await tick()).toEqual({ rows: 0, reads: 0, asked: 0 })
    await tick({ refused: failure(2) })
    expect(gone).toHaveLength(3)
  })
})
