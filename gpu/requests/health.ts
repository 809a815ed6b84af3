import { jsonOf } from '../../core/json.ts'
import { untrustedCertificate } from '../../core/untrusted-certificate.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import { AnswerTooLong, askEngine } from './ask-engine.ts'

/** An engine's health: `ready`, `loading` (it does not listen yet, or answers 503), or the status of another answer. */
export type HealthAnswer = 'ready' | 'loading' | { status: number }

/** How an engine reports its running requests: our own protocol, or the queue of a ComfyUI. */
interface RunningStatus {
  running?: unknown
  exec_info?: { queue_remaining?: unknown }
}

/**
 * Returns how many requests an engine works on: infinitely many when it does not answer, because it may work on any
 * number; 0 when its answer contains no number.
 */
export async function runningRequests(endpoint: Endpoint, path: string, headers: readonly string[]): Promise<number> {
  const { body } = await fetchHealth(endpoint, path, headers, 1_000)
  if (body === '') return Number.POSITIVE_INFINITY
  const status = jsonOf(body) as RunningStatus | ({ is_processing?: unknown } | null)[] | null | undefined
  if (Array.isArray(status)) return status.filter(slot => slot?.is_processing === true).length
  const running = status?.running ?? status?.exec_info?.queue_remaining
  return typeof running === 'number' ? running : 0
}

/** Bytes of the status of unfinished work: only finished work has results. */
const maxStatusBytes = 64 << 10

/**
 * Returns whether the work at this path still waits or runs. True when the engine does not answer; false when it does not
 * know the work.
 */
export async function isWorking(endpoint: Endpoint, path: string, headers: readonly string[]): Promise<boolean> {
  const { body } = await fetchHealth(endpoint, path, headers, 1_000, maxStatusBytes)
  if (body === '') return true
  return /"status"\s*:\s*"(queued|generating|in_progress)"/.test(body)
}

/** Fetches the JSON description of an engine; null when it has none. Never throws. */
export async function fetchDescription(endpoint: Endpoint, path: string, headers: readonly string[]): Promise<unknown> {
  const { health, body } = await fetchHealth(endpoint, path, headers, 5_000)
  return health === 'ready' ? (jsonOf(body) ?? null) : null
}

/**
 * Requests an engine's health once. Never throws; an engine that does not answer in time is `loading`. An answer of more
 * than `maxBytes` has the body `too long`. `untrusted`: the sentence about its certificate, which no wait makes valid.
 */
export async function fetchHealth(
  endpoint: Endpoint,
  path: string,
  headers: readonly string[],
  timeoutMs: number,
  maxBytes = 1 << 20,
): Promise<{ health: HealthAnswer; body: string; untrusted?: string | undefined }> {
  try {
    const { status, text } = await askEngine(endpoint, { path, headers, timeoutMs, maxBytes })
    const ok = status >= 200 && status < 300
    return { health: ok ? 'ready' : status === 503 ? 'loading' : { status }, body: text }
  } catch (thrown) {
    return {
      health: 'loading',
      body: thrown instanceof AnswerTooLong ? 'too long' : '',
      untrusted: untrustedCertificate('the engine', thrown),
    }
  }
}
