import { setTimeout as delay } from 'node:timers/promises'
import { type Box, organizationNames } from './box.ts'

/** A request or job that was seen waiting. */
export interface Wait {
  id: string
  model: string
  /** Milliseconds that it had waited when it was last seen. */
  waitedMs: number
  /** The reasons that the server gave, one after the other. */
  sentences: Set<string>
  /** What it had instead of a sentence: nothing, or half of one. */
  unexplained: Set<string>
}

export type Waits = ReturnType<typeof watchWaits>

interface Waiting {
  id: string
  model_id: string
  waiting_for: { detail: string } | null
}

const pollMs = 250

/** Reads, as an operator and as each organization, what waits and why, until it is stopped. */
export function watchWaits(box: Box) {
  const waits = new Map<string, Wait>()
  const stopped = new AbortController()

  async function read(path: string, secret: string): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${secret}` }
    const answer = await fetch(box.server.url + path, { headers }).catch(() => undefined)
    return answer?.ok ? ((await answer.json().catch(() => ({}))) as Record<string, unknown>) : {}
  }

  function saw(one: Waiting, waitedMs: number): void {
    const wait: Wait = waits.get(one.id) ?? {
      id: one.id,
      model: one.model_id,
      waitedMs,
      sentences: new Set(),
      unexplained: new Set(),
    }
    waits.set(one.id, wait)
    wait.waitedMs = waitedMs
    const sentence = one.waiting_for?.detail ?? ''
    const isSentence = /^[A-Z'\d].*\.$/s.test(sentence)
    ;(isSentence ? wait.sentences : wait.unexplained).add(sentence)
  }

  async function watch(): Promise<void> {
    while (!stopped.signal.aborted) {
      const status = await read('/api/system/status', box.server.rootToken())
      for (const one of (status.waiting ?? []) as (Waiting & { waited_ms: number })[]) saw(one, one.waited_ms)
      for (const name of organizationNames) {
        const { jobs } = await read('/api/jobs?status=pending&limit=100', box.organizations[name].secret)
        for (const one of (jobs ?? []) as (Waiting & { created_at: number })[])
          saw(one, Math.max(0, Date.now() - one.created_at * 1_000))
      }
      await delay(pollMs)
    }
  }
  const watching = watch()

  return {
    seen: waits as ReadonlyMap<string, Wait>,
    stop(): Promise<void> {
      stopped.abort()
      return watching
    },
  }
}
