import { defaultRules } from '../../../gpu/residency/advance.ts'
import type { ModelState, Resident } from '../../../gpu/residency/model-state.ts'
import type { DeviceCapacity } from '../../../gpu/residency/place.ts'
import { openResidency } from '../../../gpu/residency/residency.ts'
import { openCallers } from '../_callers.ts'

/**
 * A residency in virtual time. Every engine is ready `loadMs` after it was started and never fails; callers wait without
 * a limit.
 */
export function openVirtualFleet({
  capacities,
  orderBound,
  loadMs,
  started = () => {},
}: {
  capacities: readonly DeviceCapacity[]
  orderBound: number
  loadMs: number
  started?: (resident: Resident) => void
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
        after(loadMs, () => residency.ready(resident.engineId))
      },
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
