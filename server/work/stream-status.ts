import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { openChangeFlag } from '../http/answer/follow.ts'
import { openEventStream } from '../http/answer/sse.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'
import { generationErrorBody } from '../views/generation-request.ts'
import { hasEnded } from '../views/job-record.ts'

/** Milliseconds. fal's client closes a stream after 15 s of silence. */
const pingMs = 10_000
/** Minimum milliseconds between two events: progress may change with every step of an engine. */
const minIntervalMs = 100
/** Milliseconds between reads of the queue position: other requests change it without an event of this one. */
const queueMs = 2_000

/**
 * Sends the status of a request after every change until its end. `shown` renders it for the API in use. `generation`:
 * this very request submitted the job, so the stream continues even if its token is revoked.
 */
export async function streamStatus(
  exchange: ClientExchange,
  first: JobRecord,
  shown: (job: JobRecord) => Promise<object>,
  { jobs }: Owners<'jobs'>,
  { generation = false }: { generation?: boolean } = {},
): Promise<void> {
  const { organizationId, id } = first
  const stream = await openEventStream(exchange, { pingMs, generation })
  const changes = openChangeFlag(stream)
  const stop = jobs.follow(id, changes.set)
  try {
    let sent: string | undefined
    while (!stream.ended) {
      const job = await jobs.find(organizationId, id)
      if (!job) break
      const text = JSON.stringify(await shown(job))
      if (text !== sent) stream.send({ data: (sent = text) })
      if (hasEnded(job)) break
      await stream.caughtUp()
      await Promise.race([stream.over, delay(minIntervalMs)])
      await changes.wait(job.status === 'pending' ? queueMs : 60_000)
    }
  } catch (thrown) {
    // The head was sent: a failure from here on is the last event.
    stream.send({ data: JSON.stringify(generationErrorBody(Failure.from(thrown), exchange.id)) })
    throw thrown
  } finally {
    stop()
    stream.end()
  }
}

/** Whether the query has `logs=1` or `logs=true`. */
export const wantsLogs = (exchange: ClientExchange): boolean => ['1', 'true'].includes(exchange.query.get('logs') ?? '')
