import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { queueIdOf } from '../../../core/ids.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { openEventStream } from '../../http/answer/sse.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { route } from '../../http/request/route.ts'
import { hasEnded } from '../../views/job-record.ts'
import { slugErrorBody, slugErrors } from './errors.ts'
import { wantsLogs } from './requests.ts'
import { findRequest, statusView, type ViewOwners } from './view.ts'

/** Milliseconds. fal's client closes a stream after 15 s of silence. */
const pingMs = 10_000
/** Minimum milliseconds between two events: progress may change with every step of an engine. */
const minIntervalMs = 100
/** Milliseconds between reads of the queue position: other requests change it without an event of this one. */
const queueMs = 2_000

/**
 * Sends the status of a request after every change until its end. `shown` renders it for the API in use. `generation`:
 * the call itself submitted the request, so the stream continues even if its token is revoked.
 */
export async function streamStatus(
  call: Call,
  first: JobRecord,
  shown: (job: JobRecord) => Promise<object>,
  { jobs }: Pick<Owners, 'jobs'>,
  { generation = false }: { generation?: boolean } = {},
): Promise<void> {
  const { organizationId, id } = first
  const stream = await openEventStream(call, { pingMs, generation })
  let wake: (() => void) | undefined
  let hasChanged = true
  const stop = jobs.follow(id, () => {
    hasChanged = true
    wake?.()
  })
  const over = stream.over.then(() => wake?.())
  try {
    let sent: string | undefined
    while (!stream.ended) {
      hasChanged = false
      const job = await jobs.find(organizationId, id)
      if (!job) break
      const text = JSON.stringify(await shown(job))
      if (text !== sent) stream.send({ data: (sent = text) })
      if (hasEnded(job)) break
      await stream.caughtUp()
      await Promise.race([over, delay(minIntervalMs)])
      if (hasChanged || stream.ended) continue
      const timer = setTimeout(() => wake?.(), job.status === 'pending' ? queueMs : 60_000)
      await new Promise<void>(resolve => {
        wake = resolve
      })
      clearTimeout(timer)
      wake = undefined
    }
  } catch (thrown) {
    // The head was sent: a failure from here on is the last event.
    stream.send({ data: JSON.stringify(slugErrorBody(Failure.from(thrown), call.id)) })
    throw thrown
  } finally {
    stop()
    stream.end()
  }
}

export const streamRoutes = (owners: ViewOwners) => [
  route({
    method: 'GET',
    path: '/slug/requests/:id/status/stream',
    scope: 'user:read',
    tag: 'Generation',
    summary: 'Stream status of request',
    description:
      'The answer is a stream of server-sent events: the status of the request after each change, until its end. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event.',
    events: 'GenerationStatus',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id: z.string().describe('Id of the request: `q_…`.') }),
    query: z.strictObject({
      logs: z.string().optional().describe('`1` or `true`: send the log of the request too.'),
    }),
    errors: slugErrors,
    answer: async call => {
      const job = await findRequest(call.params.id!, call, owners)
      call.header('x-fal-request-id', queueIdOf(job.id)).header('x-job-id', job.id)
      const logs = wantsLogs(call)
      await streamStatus(
        call,
        job,
        async now => statusView(now, call, owners, logs ? await owners.jobs.logs(now) : undefined),
        owners,
      )
    },
  }),
]
