import fc from 'fast-check'
import { expect, test } from 'vitest'
import { defaultRules } from '../../../gpu/residency/advance.ts'
import type { ModelState, ParkedMemory, Resident } from '../../../gpu/residency/model-state.ts'
import { shareOn } from '../../../gpu/residency/occupancy.ts'
import { bookingNow } from '../../../gpu/residency/parking.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency } from '../../../gpu/residency/residency.ts'
import { openCallers } from '../_callers.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'

const capacities: DeviceCapacity[] = [
  { id: 'gpu0', kind: 'gpu', capacity: 24 * GiB },
  { id: 'gpu1', kind: 'gpu', capacity: 16 * GiB },
  { id: 'cpu', kind: 'cpu', capacity: 64 * GiB },
]
/** Bytes of the main memory for parked engines: it has room for two of three. */
const budget = 5.7 * GiB
const models = [
  { id: 'small', gigabytes: 6, of: {}, devices: 1 },
  { id: 'big', gigabytes: 22, of: { max_queue: 3 }, devices: 1 },
  { id: 'wide', gigabytes: 28, of: { idle_ttl: 2_000 }, devices: 2 },
  { id: 'many', gigabytes: 5, of: { replicas: { min: 0, max: 3 } }, devices: 1 },
  { id: 'kept', gigabytes: 4, of: { replicas: { min: 1, max: 1 } }, devices: 1 },
]

/** One event: a request, the outcome of a pending action, an action of an operator, or time that passes. */
const step = fc.oneof(
  fc.record({
    do: fc.constant('ask' as const),
    which: fc.nat(4),
    waitMs: fc.constantFrom(0, 500, 5_000, 60_000),
  }),
  fc.record({ do: fc.constant('release' as const), which: fc.nat(50), well: fc.boolean() }),
  fc.record({ do: fc.constant('cancel' as const), which: fc.nat(50) }),
  fc.record({
    do: fc.constant('answer' as const),
    which: fc.nat(50),
    well: fc.integer({ min: 0, max: 9 }),
  }),
  fc.record({ do: fc.constant('crash' as const), which: fc.nat(50) }),
  fc.record({ do: fc.constant('stuck' as const), which: fc.nat(50) }),
  fc.record({ do: fc.constant('unload' as const), which: fc.nat(4) }),
  fc.record({ do: fc.constant('change' as const), which: fc.nat(4), engine: fc.boolean() }),
  fc.record({ do: fc.constant('drop' as const), which: fc.nat(4) }),
  fc.record({ do: fc.constant('foreign' as const), which: fc.nat(1), part: fc.constantFrom(0, 0.3, 0.6) }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 100, 3_000, 30_000) }),
)

test('in any order of events: memory is never overbooked, no request is interrupted, every request is answered', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), steps => {
      let now = 0
      let wakeAt = Number.POSITIVE_INFINITY
      let count = 0
      const pending: { kind: 'start' | 'settle' | 'stop' | 'park' | 'unpark'; resident: Resident }[] = []
      const held: Resident[] = []
      const open = new Set<{ cancel(): void }>()
      const gone = new Set<Resident>()
      const served = new Set<Resident>()
      /** Engines that were seen when their memory was booked. */
      const booked = new Set<Resident>()
      /** Bytes of the main memory of engines that were parked: they keep them until they have ended. */
      const mainMemory = new Map<Resident, number>()
      /** The devices without what other programs use at the moment. */
      let free = capacities
      const callers = openCallers(() => now)
      const residency = openResidency(
        {
          now: () => now,
          start: resident => void pending.push({ kind: 'start', resident }),
          settle: resident => void pending.push({ kind: 'settle', resident }),
          park(resident) {
            expect([gone.has(resident), resident.leases]).toEqual([false, 0])
            mainMemory.set(resident, resident.parking!.hostBytes)
            const used = [...mainMemory.values()].reduce((sum, bytes) => sum + bytes, 0)
            expect(used).toBeLessThanOrEqual(budget)
            pending.push({ kind: 'park', resident })
          },
          unpark: resident => void pending.push({ kind: 'unpark', resident }),
          parkingBudget: () => budget,
          stop(resident, reason, kill) {
            expect(gone.has(resident)).toBe(false)
            if (!kill) expect(resident.leases).toBe(0)
            // A load serves those who waited for it before it makes room for another model.
            const waits = !resident.serves.retired && callers.waiting(resident.serves.model.id) > 0
            if (waits && reason.startsWith('to make room') && resident.readyAt !== null)
              expect(served.has(resident)).toBe(true)
            pending.push({ kind: 'stop', resident })
          },
          wake: at => {
            wakeAt = at
          },
          newEngineId: () => `e${++count}`,
        },
        () => free,
        callers.queue,
        { ...defaultRules, orderBound: 2 },
      )
      callers.attach(residency)
      const stateOf = (which: number, args: string[] = []): ModelState => {
        const { id, gigabytes, of, devices } = models[which]!
        return residency.upsert(modelOf(id, { ...of, args }), wantedOf(id, gigabytes, { devices }), 2)
      }
      const states: ModelState[] = models.map((_, which) => stateOf(which))
      residency.refresh()

      let ticks = 0
      const pass = (ms: number): void => {
        const end = now + ms
        for (let next = Math.min(wakeAt, callers.nextDeadline()); next <= end; ) {
          // A timer that reschedules itself without progress would use a whole CPU core.
          expect(++ticks).toBeLessThan(20_000)
          now = Math.max(now, next)
          callers.refuseLate()
          if (wakeAt <= now) {
            wakeAt = Number.POSITIVE_INFINITY
            residency.tick()
          }
          next = Math.min(wakeAt, callers.nextDeadline())
        }
        now = end
      }
      const ask = (state: ModelState, waitMs: number): void => {
        const taken = callers.waiting(state.model.id) === 0 ? residency.take(state.model.id) : undefined
        if (taken) served.add(taken)
        if (taken) return void held.push(taken)
        const asked = { cancel: () => {} }
        open.add(asked)
        asked.cancel = callers.ask(state, waitMs, {
          grant(resident) {
            expect([gone.has(resident), open.has(asked)]).toEqual([false, true])
            open.delete(asked)
            served.add(resident)
            held.push(resident)
          },
          refuse: () => open.delete(asked),
        })
      }
      const end = (resident: Resident): void => {
        gone.add(resident)
        mainMemory.delete(resident)
        residency.exited(resident.engineId, 'gone')
      }
      const answer = (which: number, well: number): void => {
        const [effect] = pending.splice(which % pending.length, 1)
        const { kind, resident } = effect!
        if (kind === 'settle') residency.settled(resident.engineId)
        else if (kind === 'stop') end(resident)
        else if (kind !== 'start' && well === 0) residency.parkFailed(resident.engineId, 'no')
        else if (kind === 'park') residency.parked(resident.engineId, 10, which % 2 === 0 ? 0.5 * GiB : null)
        else if (kind === 'unpark') residency.ready(resident.engineId)
        else if (well > 0) residency.ready(resident.engineId, parkingOf(resident))
        else {
          gone.add(resident)
          const reason = ['no', 'exited: out of memory', 'exited: the GPU reported an error'][which % 3]!
          residency.startFailed(resident.engineId, reason)
        }
      }
      /** Engines of one model cannot be parked. */
      const parkingOf = ({ serves, bytes }: Resident): ParkedMemory | null =>
        serves.model.id === 'many' ? null : { hostBytes: bytes * 0.2, cardBytes: GiB }
      const check = (): void => {
        const live = residency.residents().filter(({ state }) => state !== 'stopping')
        // Other programs may take memory that is booked already, but no booking is made for what they use.
        const isNew = (id: string): boolean => live.some(one => !booked.has(one) && one.devices.includes(id))
        for (const place of free.filter(({ id }) => isNew(id))) {
          const used = live.reduce((sum, one) => sum + shareOn(bookingNow(one), place.id), 0)
          expect(used).toBeLessThanOrEqual(place.capacity)
        }
        for (const one of live) booked.add(one)
        const parked = live.filter(({ state }) => state === 'parked')
        expect(live.reduce((sum, one) => sum + shareOn(bookingNow(one), 'cpu'), 0)).toBeLessThanOrEqual(budget)
        for (const { leases, serves } of parked) expect([leases, serves.retired]).toEqual([0, false])
        for (const resident of residency.residents()) {
          expect(resident.leases).toBeGreaterThanOrEqual(0)
          expect(resident.leases).toBeLessThanOrEqual(resident.slots)
        }
      }

      for (const one of steps) {
        const ready = residency.residents().filter(({ state }) => state === 'ready' || state === 'parked')
        if (one.do === 'ask') ask(states[one.which]!, one.waitMs)
        else if (one.do === 'pass') pass(one.ms)
        else if (one.do === 'foreign') {
          free = free.map((device, at) =>
            at === one.which ? { ...device, capacity: capacities[at]!.capacity * (1 - one.part) } : device,
          )
          residency.refresh()
        } else if (one.do === 'unload') residency.unload(models[one.which]!.id)
        else if (one.do === 'release' && held.length > 0)
          residency.release(held.splice(one.which % held.length, 1)[0]!, one.well ? 10 : null)
        else if (one.do === 'cancel' && open.size > 0) {
          const left = [...open][one.which % open.size]!
          open.delete(left)
          left.cancel()
        } else if (one.do === 'change') {
          states[one.which] = stateOf(one.which, one.engine ? [String(++count)] : states[one.which]!.model.args)
          residency.refresh()
        }
        // A caller that holds the previous state keeps using it.
        else if (one.do === 'drop') residency.removeModel(models[one.which]!.id)
        else if (one.do === 'answer' && pending.length > 0) answer(one.which, one.well)
        else if (one.do === 'crash' && ready.length > 0) end(ready[one.which % ready.length]!)
        else if (one.do === 'stuck' && ready.length > 0)
          residency.stuck(ready[one.which % ready.length]!.engineId, 'stuck')
        check()
      }

      free = capacities
      residency.refresh()
      // From here on nothing fails, so every request must be answered in time, and then nothing may be pending.
      for (let round = 0; round < 200; round++) {
        while (pending.length > 0) answer(0, 1)
        while (held.length > 0) residency.release(held.shift()!, 10)
        check()
        pass(1_000)
      }
      pass(400_000)
      while (pending.length > 0) answer(0, 1)
      for (const state of states) expect(state.loadWaiters).toEqual([])
      expect(open.size).toBe(0)
      // A changed or removed model has no engine left.
      for (const { serves } of residency.residents()) expect(serves).toBe(residency.find(serves.model.id))
      for (const resident of residency.residents()) expect(resident.leases).toBe(0)
    }),
    { numRuns: 300 },
  )
})
