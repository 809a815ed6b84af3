import type { EngineAddress } from '../../core/models/engine-address.ts'

/** Failures of requests in a row after which an address that can be reached gets no more; one request may be at fault. */
const maxAnsweredFailures = 3

/** Milliseconds for which an address gets no request after its first failure, and at most: it doubles. */
const firstEjectionMs = 1_000
const longestEjectionMs = 30_000

/** Milliseconds for which an address gets no request after so many failures in a row. */
const ejectionMs = (failures: number): number =>
  Math.min(firstEjectionMs * 2 ** Math.max(0, Math.min(failures - 1, 10)), longestEjectionMs)

/** Addresses that one request tries at most: each that does not answer takes seconds. */
export const maxTries = 3

/** One address of an engine, and how its last requests ended. */
export interface Address {
  readonly index: number
  readonly origin: string
  /** Slots that use it now. */
  underWay: number
  /** Failures in a row. */
  failures: number
  /** It gets no request before, unless all are ejected; milliseconds on the monotonic clock. */
  ejectedUntil: number
  /** Until when it wants no requests itself; the same clock. */
  pausedUntil: number
  /** Why it failed last, as the end of a sentence; null since it works. */
  reason: string | null
}

/** What other processes are told of an address. */
export interface AddressReport extends Pick<Address, 'index' | 'failures' | 'reason'> {
  ejectedForMs: number
}

/**
 * Chooses among the addresses of one engine by work under way. An address that fails is ejected for a time that doubles; then
 * one request tries it, and the others follow when it has succeeded. Without another address an ejected one is tried.
 */
export function openAddresses(
  origins: readonly string[],
  changed: (report: AddressReport) => void = () => {},
  now: () => number = () => performance.now(),
) {
  const all: Address[] = origins.map((origin, index) => ({
    index,
    origin,
    underWay: 0,
    failures: 0,
    ejectedUntil: 0,
    pausedUntil: 0,
    reason: null,
  }))
  /** Where the search begins, so that those with as much work take turns. */
  let next = 0

  const tell = ({ index, failures, reason, ejectedUntil }: Address): void =>
    changed({ index, failures, reason, ejectedForMs: Math.max(0, ejectedUntil - now()) })

  return {
    all: all as readonly Readonly<Address>[],

    /** Returns the address for a request that has tried these; undefined if no other is left. On the hot path. */
    choose(tried?: ReadonlySet<Address>): Address | undefined {
      if (all.length === 1) return tried?.has(all[0]!) ? undefined : all[0]
      const at = now()
      next = (next + 1) % all.length
      let best: Address | undefined
      let soonest: Address | undefined
      for (let step = 0; step < all.length; step++) {
        const one = all[(next + step) % all.length]!
        if (tried?.has(one)) continue
        if (one.ejectedUntil > 0 && one.ejectedUntil <= at) {
          // One request tries it, whatever older ones it still serves; the next one does after as long again.
          one.ejectedUntil = at + ejectionMs(one.failures)
          return one
        }
        if (one.ejectedUntil === 0 && (!best || one.underWay < best.underWay)) best = one
        if (!soonest || one.ejectedUntil < soonest.ejectedUntil) soonest = one
      }
      return best ?? soonest
    },

    /** A request succeeded there. */
    succeeded(address: Address): void {
      if (address.failures === 0 && address.ejectedUntil === 0) return
      address.failures = address.ejectedUntil = address.pausedUntil = 0
      address.reason = null
      tell(address)
    },

    /** A request failed there. `reached`: it was answered. `pauseMs`: for how long the server wants no others. */
    failed(address: Address, reason: string, { reached, pauseMs = 0 }: { reached: boolean; pauseMs?: number }): void {
      address.failures++
      address.reason = reason
      const ejected = !reached || address.failures >= maxAnsweredFailures
      const ejectedMs = Math.max(pauseMs, ejected ? ejectionMs(address.failures) : 0)
      if (ejectedMs === 0) return
      address.ejectedUntil = now() + ejectedMs
      if (pauseMs > 0) address.pausedUntil = now() + pauseMs
      tell(address)
    },

    /** Milliseconds until one of the addresses takes requests again, if all have asked for a pause; otherwise 0. */
    pauseMs: (): number => Math.max(0, Math.min(...all.map(({ pausedUntil }) => pausedUntil)) - now()),

    /** Another process has seen this. */
    told({ index, failures, reason, ejectedForMs }: AddressReport): void {
      const address = all[index]
      if (!address) return
      const ejectedUntil = failures === 0 ? 0 : now() + ejectedForMs
      Object.assign(address, { failures, reason, ejectedUntil })
    },

    /** A copy for people. */
    copy: (): EngineAddress[] =>
      all.map(({ origin, failures, reason, ejectedUntil }) => ({
        url: origin,
        state: ejectedUntil === 0 ? ('ready' as const) : ('unavailable' as const),
        failures,
        reason,
        retryMs: ejectedUntil === 0 ? null : Math.max(0, Math.round(ejectedUntil - now())),
      })),
  }
}
export type Addresses = ReturnType<typeof openAddresses>
