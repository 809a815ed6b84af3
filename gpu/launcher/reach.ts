/** What is known of whether the wrapper of a launch can be reached. Times: milliseconds on the monotonic clock. */
export interface Reach {
  /** The node on which it runs; null where that is not known. */
  node: string | null
  /** When it answered last; -Infinity before. */
  heardAt: number
  /** Attempts to connect since then at which its machine said that nobody listens, or the network that it is not there. */
  refusals: number
  /** When the first of them was made. */
  refusedSince: number
}

/** So many refusals in a row, and over so many milliseconds, are no restart of a network and no full backlog. */
const evidence = { refusals: 3, ms: 400 }

/** Milliseconds until the next attempt, by how many have failed in a row; the last one holds for all later ones. */
const pausesMs = [50, 150, 300, 500, 1_000, 2_000, 5_000]
export const pauseMs = (failures: number): number => pausesMs[Math.min(failures, pausesMs.length) - 1] ?? 0

/**
 * Whether the error of an attempt to connect says that nobody is there. A connection that is only slow says nothing, and that
 * this machine has no route says something of this machine.
 */
export const isRefusal = (code: string | undefined): boolean =>
  code === 'ECONNREFUSED' || code === 'EHOSTUNREACH' || code === 'EHOSTDOWN'

/** The same after an attempt was refused. Pure. */
export const refused = (reach: Reach, now: number): Reach => ({
  ...reach,
  refusals: reach.refusals + 1,
  refusedSince: reach.refusals === 0 ? now : reach.refusedSince,
})

/** The same after it has answered. Pure. */
export const heard = (reach: Reach, now: number): Reach => ({ ...reach, heardAt: now, refusals: 0 })

/**
 * Whether a launch counts as one that cannot be reached. Where launches run on other nodes one of them must have answered since it
 * was refused first: if none does, it may be this server that is cut off. Pure.
 */
export function isUnreachable(one: Reach, all: readonly Reach[], now: number): boolean {
  // A wrapper that has not answered yet may not listen yet: on a busy machine a pod runs long before it does.
  if (one.heardAt === Number.NEGATIVE_INFINITY) return false
  if (one.refusals < evidence.refusals || now - one.refusedSince < evidence.ms) return false
  const elsewhere = all.filter(({ node }) => node !== one.node)
  return elsewhere.length === 0 || elsewhere.some(({ heardAt }) => heardAt >= one.refusedSince)
}
