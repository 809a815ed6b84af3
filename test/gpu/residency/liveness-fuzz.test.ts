import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ModelState } from '../../../gpu/residency/model-state.ts'
import { bytesOn } from '../../../gpu/residency/occupancy.ts'
import { bookingNow } from '../../../gpu/residency/parking.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'
import { openVirtualFleet } from './_virtual-fleet.ts'

const capacities: DeviceCapacity[] = [
  { id: 'gpu0', kind: 'gpu', capacity: 24 * GiB },
  { id: 'gpu1', kind: 'gpu', capacity: 16 * GiB },
]
const models = [
  { id: 'kept', gigabytes: 4, of: { replicas: { min: 1, max: 1 } }, devices: 1 },
  { id: 'tiny', gigabytes: 3, of: { idle_ttl: 1_000 }, devices: 1 },
  { id: 'small', gigabytes: 7, of: {}, devices: 1 },
  { id: 'many', gigabytes: 5, of: { replicas: { min: 0, max: 3 } }, devices: 1 },
  { id: 'medium', gigabytes: 11, of: {}, devices: 1 },
  { id: 'big', gigabytes: 22, of: { idle_ttl: 1_000 }, devices: 1 },
  { id: 'wide', gigabytes: 24, of: {}, devices: 2 },
]
const minute = 60_000

/** Clients of one model: each sends its next request `pauseMs` after the answer to the last. */
const traffic = fc.record({
  clients: fc.nat(3),
  fromMs: fc.nat(5_000),
  serviceMs: fc.constantFrom<number>(300, 900, 4_000),
  pauseMs: fc.constantFrom<number>(0, 700, 9_000),
  background: fc.boolean(),
})

type Traffic = typeof traffic extends fc.Arbitrary<infer Value> ? Value : never

/** `medium` waits for the memory of `wide`, or of `small` and `many`, which is idle for a moment after each request. */
const alternating = [
  [0, 300, 0],
  [0, 300, 0],
  [3, 4_000, 0],
  [2, 300, 0],
  [1, 300, 9_000],
  [0, 300, 0],
  [3, 4_000, 700],
].map(([clients = 0, serviceMs = 0, pauseMs = 0]) => ({ clients, fromMs: 0, serviceMs, pauseMs, background: false }))

const quiet = { clients: 0, fromMs: 0, serviceMs: 300, pauseMs: 0, background: false }
/** `big` in the background waits for the memory of `medium`, whose callers always wait. */
const outranked = [
  quiet,
  quiet,
  { ...quiet, clients: 1, serviceMs: 4_000 },
  quiet,
  { ...quiet, clients: 3, fromMs: 1_025 },
  { ...quiet, clients: 1, pauseMs: 700, background: true },
  quiet,
]

/**
 * Lets the clients of each model ask one request after another until this time, and expects each to begin within two minutes.
 * Returns the function that counts those that wait.
 */
function askAll(
  fleet: ReturnType<typeof openVirtualFleet>,
  states: readonly ModelState[],
  all: readonly Traffic[],
  untilMs: number,
): () => number {
  let waiting = 0
  for (const [which, { clients, fromMs, serviceMs, pauseMs, background }] of all.entries()) {
    const ask = (): void => {
      const since = fleet.now()
      if (since >= untilMs) return
      waiting++
      fleet.ask(states[which]!, {
        serviceMs,
        background,
        granted: () => {
          waiting--
          expect(fleet.now() - since).toBeLessThan(2 * minute)
        },
        completed: () => fleet.after(pauseMs, ask),
      })
    }
    for (let client = 0; client < clients; client++) fleet.at(fromMs, ask)
  }
  return () => waiting
}

/** What running executions need next, from a time on. */
const changes = fc.array(
  fc.record({
    atMs: fc.nat(3 * minute),
    next: fc.subarray(models.map(({ id }) => id)),
    runs: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 12 },
)

test('no request waits for ever, however busy the other models are, and whatever is loaded ahead', () => {
  fc.assert(
    fc.property(fc.array(traffic, { minLength: models.length, maxLength: models.length }), changes, (all, upcoming) => {
      const fleet = openVirtualFleet({ capacities, orderBound: 2, loadMs: 500 })
      const states = models.map(({ id, gigabytes, of, devices }) =>
        fleet.residency.upsert(modelOf(id, of), wantedOf(id, gigabytes, { devices }), 2),
      )
      fleet.residency.refresh()
      const waiting = askAll(fleet, states, all, 3 * minute)
      for (const { atMs, next, runs } of upcoming)
        fleet.at(atMs, () => fleet.residency.upcoming(new Map(next.map(id => [id, runs]))))
      fleet.run(5 * minute)
      expect(waiting()).toBe(0)
    }),
    {
      numRuns: 20,
      examples: [
        [alternating, []],
        [outranked, []],
      ],
    },
  )
})

const host = { id: 'cpu', kind: 'cpu' as const, capacity: 40 * GiB }
const budget = 15 * GiB

test('with engines that are parked nobody waits for ever, and no memory is booked twice', () => {
  let woken = 0
  fc.assert(
    fc.property(
      fc.array(traffic, { minLength: 4, maxLength: 4 }),
      fc.array(fc.boolean(), { maxLength: 4 }),
      (all, failures) => {
        const free = [capacities[0]!, host]
        let tried = 0
        const fleet = openVirtualFleet({
          capacities: free,
          orderBound: 2,
          loadMs: 4_000,
          parking: {
            memory: { hostBytes: 7 * GiB, cardBytes: GiB },
            budget,
            wakeMs: 500,
            fails: () => failures[tried++] ?? false,
          },
          started(resident) {
            if (resident.wakes) woken++
            const there = fleet.residency.residents().filter(({ state }) => state !== 'stopping')
            const booked = there.map(bookingNow)
            for (const device of free) expect(bytesOn(device, booked as never)).toBeLessThanOrEqual(device.capacity)
            expect(bytesOn(host, booked as never)).toBeLessThanOrEqual(budget)
          },
        })
        const states = all.map((_, at) => fleet.residency.upsert(modelOf(`m${at}`), wantedOf(`m${at}`, 15 + at), 2))
        const waiting = askAll(fleet, states, all, minute)
        fleet.run(4 * minute)
        expect(waiting()).toBe(0)
      },
    ),
    { numRuns: 15 },
  )
  expect(woken).toBeGreaterThan(0)
})
