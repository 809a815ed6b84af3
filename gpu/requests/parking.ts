import { Failure } from '../../core/failure.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import type { ParkingCall } from '../presets/parking-way.ts'
import { askEngine } from './ask-engine.ts'

/** Milliseconds that one request may take: 140 GB are copied in this time at 2.5 GB a second. */
const patienceMs = 60_000
/** Characters of an answer that explain a failure. */
const quoted = 200

/** Sends the requests that park or wake an engine, one after the other. Rejects with Failure `worker_error` when one is refused,
 * and with another error when it is not answered. */
export async function sendParking(
  endpoint: Endpoint,
  headers: readonly string[],
  calls: readonly ParkingCall[],
): Promise<void> {
  for (const { path, body } of calls) {
    const { status, text } = await askEngine(endpoint, { method: 'POST', path, headers, body, timeoutMs: patienceMs })
    if (status >= 300)
      throw new Failure('worker_error', `The engine answered ${status} at ${path}.`, {
        engineText: text.slice(0, quoted),
      })
  }
}
