import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Failure } from '../../failure.ts'
import { ConnectionFailure, type RetryRules, withRetries } from './requests.ts'
import type { HubSettings } from './settings.ts'

/** Maximum time for the first connection, milliseconds. */
const connectWithinMs = 3_500
/** Attempts if the connection is refused or breaks at once, because a single error may be temporary. */
const maxAttempts = 3

/** Diagnostics channel on which Node's fetch announces a connection to the server or to the proxy. */
const connected = 'undici:client:connected'

/**
 * Runs the first request of a download, which shows whether there is a network. Without a connection it rejects within 5 s
 * with Failure `no_capacity`, which names the proxy and the hub. Once connected, the usual timeouts apply. `run` must end
 * when `cancel` is aborted.
 */
export async function firstRequest<T>(
  run: () => Promise<T>,
  {
    target,
    hub,
    retryRules,
    signal,
    cancel,
  }: { target: URL; hub: HubSettings; retryRules: RetryRules; signal: AbortSignal; cancel: AbortController },
): Promise<T> {
  let isConnected = false
  const onConnected = () => {
    isConnected = true
    clearTimeout(timer)
  }
  const timer = setTimeout(
    () => cancel.abort(unreachable(target, hub, `no connection within ${connectWithinMs / 1_000} s`)),
    connectWithinMs,
  )
  subscribe(connected, onConnected)
  // A connection to a proxy does not prove that the hub can be reached.
  const isUnreached = (thrown: unknown): thrown is ConnectionFailure =>
    thrown instanceof ConnectionFailure && (!isConnected || hub.proxy !== undefined)
  let failures = 0
  const once = async () => {
    try {
      return await run()
    } catch (thrown) {
      if (isUnreached(thrown) && ++failures >= maxAttempts) throw unreachable(target, hub, thrown.reason, thrown)
      throw thrown
    }
  }
  try {
    return await withRetries(once, { retryRules, signal: AbortSignal.any([signal, cancel.signal]) })
  } catch (thrown) {
    signal.throwIfAborted()
    // `retryRules` may allow fewer attempts than `maxAttempts`.
    throw isUnreached(thrown) ? unreachable(target, hub, thrown.reason, thrown) : thrown
  } finally {
    clearTimeout(timer)
    unsubscribe(connected, onConnected)
  }
}

function unreachable(target: URL, { endpoint, proxy }: HubSettings, reason: string, cause?: unknown): Failure {
  const isHub = target.origin === new URL(endpoint).origin
  const through =
    proxy === undefined
      ? 'No proxy is set (HTTPS_PROXY)'
      : `Requests go through the proxy ${proxy.address} (${proxy.variable})`
  const where = isHub ? ` HF_ENDPOINT, which names another hub, is ${endpoint}.` : ''
  return new Failure(
    'no_capacity',
    `${target.host} cannot be reached: ${reason}. ${through}.${where} Or download the file on another machine and add it with: infer model add <file>`,
    { cause },
  )
}
