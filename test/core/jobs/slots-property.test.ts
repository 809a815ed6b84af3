import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { openDispatch } from '../../../core/jobs/dispatch.ts'
import { openQueue, type RunningEntry } from '../../../core/jobs/queue.ts'
import { openSuspects } from '../../../core/jobs/suspects.ts'
import { openWaitingCalls, type WaitingCall } from '../../../core/jobs/waiting-calls.ts'
import { openLog } from '../../../core/log.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import { jobClasses } from '../../../core/store/store.ts'
import { slotsOnly } from './_fleet.ts'
import { waiting } from './_queue.ts'

const organizations = ['a', 'b', 'c', 'd']
const stored = jobClasses.filter(jobClass => jobClass !== 'interactive')

/** One event in the queue of a model. */
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('call' as const), organization: fc.nat(3) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('job' as const), organization: fc.nat(3), jobClass: fc.nat(2) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(50) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(50) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('slots' as const), count: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'refuse' as const }) },
)

test('no slot is lost or given twice, and each entry ends once, whatever arrives, leaves and fails', () => {
  fc.assert(
    fc.property(fc.array(step, { size: 'max', maxLength: 150 }), fc.integer({ min: 1, max: 4 }), (steps, jobSlots) => {
      const slots = slotsOnly({ slots: 2 })
      const queue = openQueue({ weightOf: () => 1 })
      const calls = openWaitingCalls({ queue })
      const held: { id: string; lease: Lease; end(): void }[] = []
      const ended: string[] = []
      let came = 0
      const hold = (id: string, lease: Lease, turn: RunningEntry, after: () => void): void => {
        expect(held.map(one => one.id)).not.toContain(id)
        const end = () => {
          ended.push(id)
          queue.ran(turn, 10)
          lease.release()
          after()
        }
        held.push({ id, lease, end })
      }
      const dispatch = openDispatch({
        fleet: slots.fleet,
        find: id => slots.models.find(id),
        queue,
        calls,
        suspects: openSuspects(),
        refill: {
          begin: async () => {},
          wake() {},
          now: () => Promise.reject(new Error('Nothing is stored here')),
          close: async () => {},
        },
        log: openLog('error'),
        begin: (turn, slot) => hold(turn.job.id, slot as Lease, turn, () => dispatch.freed('m')),
        unwritten: () => 0,
        slots: jobSlots,
        slotsPerModel: jobSlots,
      })
      const waits = new Map<string, WaitingCall>()
      const jobs = new Map<string, ReturnType<typeof waiting>>()

      for (const one of steps) {
        if (one.do === 'call') {
          const id = `call${++came}`
          const call: WaitingCall = {
            job: waiting(id, organizations[one.organization]!, came, 'm', 'interactive'),
            since: 0,
            deadline: Number.POSITIVE_INFINITY,
            granted({ lease, entry }) {
              waits.delete(id)
              hold(id, lease, entry, () => {})
            },
            refused() {
              waits.delete(id)
              ended.push(id)
            },
          }
          waits.set(id, call)
          calls.add(call)
          dispatch.check('m')
        } else if (one.do === 'job') {
          const id = `job${++came}`
          const job = waiting(id, organizations[one.organization]!, came, 'm', stored[one.jobClass])
          jobs.set(id, job)
          queue.offer(job)
          dispatch.check('m')
        } else if (one.do === 'end' && held.length > 0) held.splice(one.which % held.length, 1)[0]!.end()
        else if (one.do === 'leave' && waits.size > 0) {
          const [id, call] = [...waits][one.which % waits.size]!
          expect(calls.withdraw(call)).toBe(true)
          waits.delete(id)
          ended.push(id)
          dispatch.check('m')
        } else if (one.do === 'cancel') {
          const pending = [...jobs].filter(([id]) => !ended.includes(id) && !held.some(other => other.id === id))
          const [id, job] = pending[one.which % Math.max(1, pending.length)] ?? []
          if (!id || !job) continue
          queue.remove(job)
          ended.push(id)
          dispatch.check('m')
        } else if (one.do === 'slots') slots.setSlots('m', one.count)
        else if (one.do === 'refuse') {
          slots.refuse('m', new Failure('worker_error', 'It broke.', { retryAfterMs: 100 }))
          slots.refuse('m', undefined)
        }
        // The held slots are those that the fleet gave, and no entry waits that could run.
        expect(slots.held('m')).toBe(held.length)
        const jobsHeld = held.filter(({ id }) => id.startsWith('job')).length
        expect(jobsHeld).toBeLessThanOrEqual(jobSlots)
        expect(dispatch.held('m')).toBe(jobsHeld)
        expect(waits.size).toBe(queue.waiting('m').interactive)
        if (slots.free('m') > 0) expect(waits.size).toBe(0)
        if (slots.free('m') > 0 && jobsHeld < jobSlots && !dispatch.pause('m'))
          expect(queue.waiting('m').background).toBe(0)
      }

      dispatch.close()
      slots.setSlots('m', 100)
      expect(waits.size).toBe(0)
      while (held.length > 0) held.pop()!.end()
      expect(slots.held('m')).toBe(0)
      expect(new Set(ended).size).toBe(ended.length)
      expect(ended.length + queue.waiting('m').background).toBe(came)
    }),
    { numRuns: 500, endOnFailure: true },
  )
})

test('no lane waits past the ageing bound while others are served, whatever arrives and leaves', () => {
  const arrival = fc.record({
    organization: fc.nat(3),
    jobClass: fc.nat(3),
    gapMs: fc.nat(400),
    ms: fc.integer({ min: 10, max: 300 }),
    cancelled: fc.nat(9).map(chance => chance === 0),
  })
  const ageingMs = 2_000
  fc.assert(
    fc.property(
      fc.array(arrival, { size: 'max', maxLength: 400 }),
      fc.integer({ min: 1, max: 3 }),
      (arrivals, slots) => {
        let now = 0
        const queue = openQueue({ weightOf: () => 1, now: () => now, ageingMs })
        const running: { turn: RunningEntry; ends: number; ms: number }[] = []
        const lasting = new Map<string, number>()
        /** When each waiting lane was served last, or began to wait. */
        const since = new Map<string, number>()
        const count = new Map<string, number>()
        let [at, longest] = [0, 0]
        const coming = arrivals.map((one, id) => ({ ...one, id: String(id), at: (at += one.gapMs / 4) }))
        // A round of all lanes at their longest, twice, and then one of four turns for each older lane.
        const bound = Math.max(ageingMs, 2 * 16 * 300) + 4 * 16 * 300
        for (;;) {
          while (coming[0] && coming[0].at <= now) {
            const { id, organization, jobClass, ms, cancelled } = coming.shift()!
            const job = waiting(id, organizations[organization]!, Number(id), 'm', jobClasses[jobClass])
            const lane = `${job.class} ${job.organizationId}`
            queue.offer(job)
            if (cancelled) {
              queue.remove(job)
              continue
            }
            lasting.set(id, ms)
            if (!count.get(lane)) since.set(lane, now)
            count.set(lane, (count.get(lane) ?? 0) + 1)
          }
          while (running.length < slots) {
            const next = queue.next('m')
            if (!next || !('job' in next)) break
            const turn = queue.take(next)
            const lane = `${turn.job.class} ${turn.job.organizationId}`
            longest = Math.max(longest, now - since.get(lane)!)
            since.set(lane, now)
            count.set(lane, count.get(lane)! - 1)
            const ms = lasting.get(turn.job.id)!
            running.push({ turn, ms, ends: now + ms })
          }
          const nextEnd = Math.min(...running.map(({ ends }) => ends))
          const next = Math.min(coming[0]?.at ?? Infinity, nextEnd)
          if (next === Infinity) break
          now = next
          for (const one of running.filter(({ ends }) => ends <= now)) {
            running.splice(running.indexOf(one), 1)
            queue.ran(one.turn, one.ms)
          }
        }
        expect(longest).toBeLessThanOrEqual(bound)
        expect(queue.stats()).toEqual({ waiting: 0, held: 0, lanes: 0 })
      },
    ),
    { numRuns: 300, endOnFailure: true },
  )
})
