import { defaultRules } from '../../../gpu/residency/advance.ts'
import type { ModelState, ParkedMemory, Resident } from '../../../gpu/residency/model-state.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency } from '../../../gpu/residency/residency.ts'
import { openCallers } from '../_callers.ts'

/**
 * A residency in virtual time. Every engine is ready `loadMs` after it was started and never fails; callers wait without
 * a limit. With `parking`, engines can be parked, which takes 200 ms, and woken in `wakeMs`; `fails` says of each time
 * whether it does.
 */
export function openVirtualFleet({
  capacities,
  orderBound,
  loadMs,
  started = () => {},
  parking,
}: {
  capacities: readonly DeviceCapacity[]
  orderBound: number
  loadMs: number
  started?: (resident: Resident) => void
  parking?: { memory: ParkedMemory; budget: number; wakeMs: number; fails: () => boolean }
}) {
  const events: { at: number; act: () => void }[] = []
  let now = 0
  let engines = 0
  let wakeAt = Number.POSITIVE_INFINITY
  /** Events at the same time run in the order in which they were added. */
  function at(time: number, act: () => void): void {
    const later = events.findIndex(event => event.at > time)
    events.splice(later < 0 ? events.length : later, 0, { at: time, act })
  }
  const after = (ms: number, act: () => void): void => at(now + ms, act)
  const callers = openCallers(() => now)
  const residency = openResidency(
    {
      now: () => now,
      start(resident) {
        started(resident)
        after(loadMs, () => residency.ready(resident.engineId, parking?.memory))
      },
      ...(parking && {
        parkingBudget: () => parking.budget,
        park({ engineId }) {
          if (parking.fails()) after(200, () => residency.parkFailed(engineId, 'it failed'))
          else after(200, () => residency.parked(engineId, 200, null))
        },
        unpark(resident) {
          const { engineId } = resident
          started(resident)
          if (parking.fails()) after(parking.wakeMs, () => residency.parkFailed(engineId, 'it failed'))
          else after(parking.wakeMs, () => residency.ready(engineId))
        },
      }),
      settle: ({ engineId }) => after(100, () => residency.settled(engineId)),
      stop: ({ engineId }) => after(100, () => residency.exited(engineId, 'stopped')),
      wake: time => void (wakeAt = time),
      newEngineId: () => `e${++engines}`,
    },
    () => capacities,
    callers.queue,
    { ...defaultRules, orderBound },
  )
  callers.attach(residency)

  return {
    residency,
    at,
    after,
    now: () => now,
    /** Requests a slot, and releases it `serviceMs` after it was granted. */
    ask(
      state: ModelState,
      {
        serviceMs,
        background = false,
        granted = () => {},
        completed = () => {},
      }: {
        serviceMs: number
        background?: boolean
        granted?: (resident: Resident) => void
        completed?: () => void
      },
    ): void {
      callers.ask(
        state,
        Number.POSITIVE_INFINITY,
        {
          grant(resident) {
            granted(resident)
            after(serviceMs, () => {
              residency.release(resident, serviceMs)
              completed()
            })
          },
          refuse: failure => {
            throw failure
          },
        },
        background,
      )
    },
    /** Runs all events before `end`, in order. */
    run(end: number): void {
      for (let next = 0; ; ) {
        next = Math.min(events[0]?.at ?? Number.POSITIVE_INFINITY, wakeAt)
        if (next >= end) return
        now = Math.max(now, next)
        while (events[0] && events[0].at <= now) events.shift()!.act()
        if (wakeAt > now) continue
        wakeAt = Number.POSITIVE_INFINITY
        residency.tick()
      }
    },
  }
}
