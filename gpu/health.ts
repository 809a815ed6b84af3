import { Client } from 'undici'
import type { Endpoint } from './launcher/launcher.ts'

/** What an engine says of itself: `ready`, `loading` (nobody listens yet, or 503), or another answer with its status. */
export type Health = 'ready' | 'loading' | { status: number }

/** How many requests an engine works on; one that does not answer may work on any number, one that does not say on none. */
export async function stillRunning(endpoint: Endpoint, path: string, headers: readonly string[]): Promise<number> {
  const { body } = await askHealth(endpoint, path, headers, 1_000)
  if (body === '') return Number.POSITIVE_INFINITY
  try {
    const runningStatus = JSON.parse(body) as { running?: unknown } | { is_processing?: unknown }[]
    if (Array.isArray(runningStatus)) return runningStatus.filter(slot => slot?.is_processing === true).length
    return typeof runningStatus.running === 'number' ? runningStatus.running : 0
  } catch {
    return 0
  }
}

/** What an engine describes itself with, as JSON; null where it does not. Never throws. */
export async function askDescription(endpoint: Endpoint, path: string, headers: readonly string[]): Promise<unknown> {
  const { health, body } = await askHealth(endpoint, path, headers, 5_000)
  if (health !== 'ready') return null
  try {
    return JSON.parse(body) as unknown
  } catch {
    return null
  }
}

/** Asks an engine for its health once. Never throws; an engine that does not answer in time is `loading`. */
export async function askHealth(
  endpoint: Endpoint,
  path: string,
  headers: readonly string[],
  timeoutMs: number,
): Promise<{ health: Health; body: string }> {
  const client = new Client(endpoint.origin, {
    socketPath: endpoint.socketPath,
    connectTimeout: timeoutMs,
    maxResponseSize: 1 << 20,
    allowH2: false,
  })
  try {
    const { statusCode, body } = await client.request({
      path,
      method: 'GET',
      headers: [...headers],
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await body.text()
    const ok = statusCode >= 200 && statusCode < 300
    return { health: ok ? 'ready' : statusCode === 503 ? 'loading' : { status: statusCode }, body: text }
  } catch {
    return { health: 'loading', body: '' }
  } finally {
    await client.destroy()
  }
}
