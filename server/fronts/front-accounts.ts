import type { Caller } from '../../core/accounts/accounts.ts'
import { passOn } from '../../core/jobs/front-calls.ts'

/** Milliseconds for which a caller is believed, and after which control is asked again, which notes that it is used. */
const [believedMs, askAgainMs] = [30_000, 10_000]
const maxKnown = 4_096

interface Known {
  /** Null: control decides about each of its requests. */
  caller: Caller | null
  until: number
  askedAt: number
}

/**
 * The callers that a front knows, by secret. An unknown one is asked for, and its request passed on. Control makes all
 * fronts forget them before it answers a change.
 */
export function openFrontAccounts({ ask, now = Date.now }: { ask: (secret: string) => void; now?: () => number }) {
  const known = new Map<string, Known>()

  function find(secret: string): Caller | undefined {
    const at = now()
    const entry = known.get(secret)
    if (entry && at - entry.askedAt >= askAgainMs) {
      entry.askedAt = at
      ask(secret)
    } else if (!entry) {
      if (known.size >= maxKnown) known.clear()
      known.set(secret, { caller: null, until: 0, askedAt: at })
      ask(secret)
    }
    return entry?.caller && at < entry.until ? entry.caller : undefined
  }

  return {
    /** Returns the caller of a secret. Throws `passOn` unless this front knows it. */
    authenticate(secret: string | undefined): Caller {
      const caller = secret === undefined ? undefined : find(secret)
      if (!caller) throw passOn
      return caller
    },
    find: (secret: string) => find(secret)?.token,
    /** Control has answered. */
    learn(secret: string, caller: Caller | null, until: number): void {
      const entry = known.get(secret)
      if (!entry) return
      entry.caller = caller
      entry.until = Math.min(until, now() + believedMs)
    },
    forget: (): void => known.clear(),
  }
}
export type FrontAccounts = ReturnType<typeof openFrontAccounts>
