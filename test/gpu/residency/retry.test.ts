import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Admitted } from '../../../core/admission/admission.ts'
import { Failure } from '../../../core/failure.ts'
import { openCalls } from '../../../core/jobs/calls.ts'
import { openDispatch } from '../../../core/jobs/dispatch.ts'
import { openJobDurations } from '../../../core/jobs/job-durations.ts'
import { openQueue } from '../../../core/jobs/queue.ts'
import { openSuspects } from '../../../core/jobs/suspects.ts'
import { openWaitingCalls } from '../../../core/jobs/waiting-calls.ts'
import type { Lease, SlotQueue } from '../../../core/models/fleet.ts'
import { noUsage } from '../../../core/usage.ts'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import type { FirstLoad } from '../../../gpu/residency/first-load.ts'
import { openResidency, type Residency } from '../../../gpu/residency/residency.ts'
import { errorHeaders } from '../../../server/http/request/errors.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance', 'Date'] }),
)
afterEach(() => void vi.useRealTimers())

/** The real queue, calls and residency, with room for one model and engines that take `loadMs` to load. */
function openBox({ loadMs, limitMs }: { loadMs: number; limitMs: number }) {
  const now = () => performance.now()
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const events: string[] = []
  const models = ['a', 'b', 'c', 'd', 'e', 'f'].map(id => modelOf(id, { dispatch_wait_ms: limitMs, concurrency: 4 }))
  let connected: SlotQueue
  let engines = 0
  let wake: NodeJS.Timeout | undefined
  const residency: Residency = openResidency(
    {
      now,
      start({ engineId, serves }) {
        events.push(`load ${serves.model.id}`)
        setTimeout(() => residency.ready(engineId), loadMs)
      },
      settle: ({ engineId }) => setTimeout(() => residency.settled(engineId), 100),
      stop: ({ engineId }) => setTimeout(() => residency.exited(engineId, 'stopped'), 100),
      wake(at) {
        clearTimeout(wake)
        wake = setTimeout(() => residency.tick(), at - now())
      },
      newEngineId: () => `e${++engines}`,
      // As the fleet learns from measured loads.
      loaded(_, ms) {
        const firstLoad: FirstLoad = { ms, isLikely: true }
        for (const state of residency.states()) Object.assign(state, { firstLoad })
      },
    },
    () => [{ id: 'gpu0', kind: 'gpu', capacity: 24 * GiB }],
    {
      waits: id => connected.waits(id),
      demand: id => connected.demand(id),
      serve: id => connected.serve(id),
      refuse: (...refusal) => connected.refuse(...refusal),
      get reference() {
        return connected.reference
      },
    },
    defaultRules,
  )
  const take = (modelId: string): Lease | undefined => {
    const resident = residency.take(modelId)
    if (!resident) return undefined
    const used = () => ({ gpuMs: 0, energyMj: 0 })
    const release = () => residency.release(resident, 200)
    return { engineId: resident.engineId, modelId, used, release } as unknown as Lease
  }
  const queue = openQueue({ weightOf: () => 1, now })
  const waiting = openWaitingCalls({ queue, now })
  const suspects = openSuspects()
  const find = (id: string) => models.find(model => model.id === id)
  const dispatch = openDispatch({
    fleet: {
      take,
      slots: () => ({ ready: 4, planned: 4 }),
      demandChanged: id => residency.demandChanged(residency.find(id)!),
      connect: slotQueue => void (connected = slotQueue),
    },
    find,
    queue,
    calls: waiting,
    refill: { wake() {}, now: () => Promise.resolve() } as never,
    suspects,
    log,
    begin() {},
    unwritten: () => 0,
    slots: 256,
    slotsPerModel: 256,
  })
  const calls = openCalls({
    fleet: {
      activity: id => residency.activity(residency.find(id)!),
      slots: () => ({ ready: 0, planned: 4 }),
    },
    dispatch,
    queue,
    waiting,
    recorder: { record() {}, find() {} } as never,
    durations: openJobDurations(),
    suspects,
    used() {},
    rankOf: () => now(),
    holdMs: 600_000,
    log,
  })
  for (const model of models) residency.upsert(model, wantedOf(model.id, 20), 4)

  /** A client that obeys `Retry-After`. Resolves with how often it was refused. */
  async function ask(modelId: string): Promise<number> {
    for (let refusals = 0; ; refusals++) {
      const admitted = { organizationId: 'org', tokenId: 'key', task: 'std/chat-completion', model: find(modelId)! }
      const options = {
        admitted: admitted as unknown as Admitted,
        createdAt: Date.now(),
        waitMs: Number.POSITIVE_INFINITY,
        caller: Object.assign(new AbortController(), {
          throwIfAborted() {},
          addEventListener() {},
          removeEventListener() {},
        }),
      }
      try {
        await calls.run(options as never, async () => {
          await new Promise(done => setTimeout(done, 200))
          events.push(`serve ${modelId}`)
          return { how: 'completed', usage: noUsage }
        })
        return refusals
      } catch (thrown) {
        const headers = errorHeaders(Failure.from(thrown))
        await new Promise(done => setTimeout(done, Number(headers[headers.indexOf('retry-after') + 1]) * 1_000))
      }
    }
  }
  return { ask, events, ids: models.map(({ id }) => id) }
}

test.each([
  ['a refused caller comes back when the load can begin, and is held until it ends', 20_000, 30_000, 2],
  ['with a limit shorter than the load, once more when it is ready', 20_000, 5_000, 12],
  ['loads of minutes', 200_000, 30_000, 12],
])('six models asked once, by clients that obey Retry-After: %s', async (_rule, loadMs, limitMs, most) => {
  const { ask, events, ids } = openBox({ loadMs, limitMs })
  const began = performance.now()
  const all = Promise.all(ids.map(ask)).then(refusals => ({ refusals, tookMs: performance.now() - began }))
  await vi.advanceTimersByTimeAsync(20 * loadMs)
  const { refusals, tookMs } = await all
  // Each load serves the one for whom it began.
  expect(
    events.filter(one => one.startsWith('load')),
    events.join(', '),
  ).toHaveLength(6)
  expect(tookMs / (6 * loadMs)).toBeLessThan(1.25)
  expect(Math.max(...refusals)).toBeLessThan(most)
})
