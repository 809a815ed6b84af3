import type { Failure } from '../failure.ts'
import type { Lease } from '../models/fleet.ts'

/** The requests that were in flight when one engine ended, and have not ended since. */
interface Crash {
  readonly members: Set<string>
  /** One of them has ended an engine alone. */
  explained: boolean
}

interface Suspect {
  crash: Crash | undefined
  /** How many engines have ended while it ran beside others. */
  beside: number
  /** It has ended an engine alone. */
  guilty: boolean
  /** How long it had run when an engine ended, at most, milliseconds. */
  ranMs: number
}

/** How long a suspect runs alone after it has run for as long as when its engine ended, and at most, milliseconds. */
const marginMs = 1_000
const maxAloneMs = 10_000

/** The end of an engine under a request, as the process saw it in which that ran. */
export interface EngineEnd {
  engineId: string
  /** How many other slots of it were in use. */
  othersAtEnd: number
  /** How long the request had run, milliseconds. */
  ranMs: number
}

/** Returns the end of the engine that made an attempt fail after `ranMs`; undefined if it failed for another reason. Pure. */
export function engineEndOf(
  { code, unsent }: Failure,
  { engineId, othersAtEnd }: Pick<Lease, 'engineId' | 'othersAtEnd'>,
  ranMs: number,
): EngineEnd | undefined {
  // What no engine has got has ended none.
  if (unsent || othersAtEnd === undefined || (code !== 'worker_error' && code !== 'timeout')) return undefined
  return { engineId, othersAtEnd, ranMs }
}

/**
 * What a crash of an engine says about one of the requests in flight. `none`: its attempt failed for another reason.
 * `alone`: no other request ran, so the attempt is charged. `beside`: it runs again, uncharged.
 */
export type CrashPart = 'none' | 'alone' | 'beside'

/**
 * The calls and jobs that may have ended an engine, by id. Each begins alone on an engine until one of those that were in
 * flight has ended an engine alone; those that ended one, and those whose engine ended twice beside others, run alone
 * to their end. So a request is retried uncharged twice at most, and every further crash has one culprit. In memory
 * only: after a restart of the server a crash costs one more round.
 */
export function openSuspects() {
  const suspects = new Map<string, Suspect>()
  /** By the engine that ended. */
  const crashes = new Map<string, Crash>()

  function leave(id: string, { crash }: Suspect): void {
    crash?.members.delete(id)
    if (crash?.members.size === 0) for (const [engineId, one] of crashes) if (one === crash) crashes.delete(engineId)
  }

  return {
    /** Whether the request should begin on an engine that serves nothing else. Cheap. */
    runsAlone(id: string): boolean {
      const suspect = suspects.size === 0 ? undefined : suspects.get(id)
      return suspect !== undefined && (suspect.guilty || suspect.beside > 1 || suspect.crash?.explained !== true)
    },
    /** How long it then runs alone before others may join it, milliseconds; infinite: to its end. */
    aloneMs(id: string): number {
      const { guilty = false, beside = 0, ranMs = 0 } = suspects.get(id) ?? {}
      return guilty || beside > 1 ? Number.POSITIVE_INFINITY : Math.min(ranMs + marginMs, maxAloneMs)
    },
    has: (id: string): boolean => suspects.has(id),

    /** Call it when an attempt has failed, with the end of its engine if that was the reason. */
    failed(id: string, engineEnd: EngineEnd | undefined): CrashPart {
      if (!engineEnd) return 'none'
      const { engineId, othersAtEnd, ranMs } = engineEnd
      const suspect = suspects.get(id) ?? { crash: undefined, beside: 0, guilty: false, ranMs: 0 }
      suspects.set(id, suspect)
      suspect.ranMs = Math.max(suspect.ranMs, ranMs)
      if (othersAtEnd === 0) {
        suspect.guilty = true
        if (suspect.crash) suspect.crash.explained = true
        return 'alone'
      }
      leave(id, suspect)
      const crash = crashes.get(engineId) ?? { members: new Set(), explained: false }
      crashes.set(engineId, crash)
      crash.members.add(id)
      suspect.crash = crash
      suspect.beside++
      return 'beside'
    },

    /** Call it when the request has ended for good. */
    ended(id: string): void {
      const suspect = suspects.size === 0 ? undefined : suspects.get(id)
      if (!suspect) return
      suspects.delete(id)
      leave(id, suspect)
    },
  }
}
export type Suspects = ReturnType<typeof openSuspects>
