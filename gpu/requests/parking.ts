import { Failure } from '../../core/failure.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import type { ParkingCall } from '../presets/parking-way.ts'
import { openEngineClient } from './engine-client.ts'

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
  const client = openEngineClient(endpoint, { headersTimeout: patienceMs, bodyTimeout: patienceMs })
  try {
    for (const { path, body } of calls) {
      const response = await client.request({
        path,
        method: 'POST',
        headers: [...(body ? ['content-type', 'application/json'] : []), ...headers],
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(patienceMs),
      })
      const text = await response.body.text()
      if (response.statusCode >= 300)
        throw new Failure('worker_error', `The engine answered ${response.statusCode} at ${path}.`, {
          engineText: text.slice(0, quoted),
        })
    }
  } finally {
    await client.destroy()
  }
}
