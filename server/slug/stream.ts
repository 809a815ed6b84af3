import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { queueIdOf } from '../../core/ids.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { hasEnded } from '../api/job-record.ts'
import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import { route } from '../route.ts'
import { EventStream } from '../sse.ts'
import { slugErrorBody, slugErrors } from './errors.ts'
import { wantsLogs } from './requests.ts'
import { findRequest, statusView, type ViewOwners } from './view.ts'

/** fal's client takes a stream for dead after 15 s of silence. */
const pingMs = 10_000
/** Progress may come with every step; nobody reads faster than this. */
const restMs = 100
/** Its place in the queue changes with other requests, of which nothing is heard here. */
const queueMs = 2_000

/**
 * Sends the status of a request whenever it has changed, until it has ended. `shown` puts it into the words of the
 * surface.
 */
export async function streamStatus(
  call: Call,
  first: JobRecord,
  shown: (job: JobRecord) => Promise<object>,
  { jobs }: Pick<Owners, 'jobs'>,
): Promise<void> {
  const { organizationId, id } = first
  let changed: (() => void) | undefined
  let news = true
  const stop = jobs.follow(id, () => {
    news = true
    changed?.()
  })
  const stream = new EventStream(call, { pingMs })
  const over = stream.over.then(() => changed?.())
  try {
    let sent: string | undefined
    while (!stream.ended) {
      news = false
      const job = await jobs.find(organizationId, id)
      if (!job) break
      const text = JSON.stringify(await shown(job))
      if (text !== sent) stream.send({ data: (sent = text) })
      if (hasEnded(job)) break
      await stream.caughtUp()
      await Promise.race([over, delay(restMs)])
      if (news || stream.ended) continue
      const soon = setTimeout(() => changed?.(), job.status === 'pending' ? queueMs : 60_000)
      await new Promise<void>(resolve => {
        changed = resolve
      })
      clearTimeout(soon)
      changed = undefined
    }
  } catch (thrown) {
    // The head is out: what goes wrong from here on is told as the last record.
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
    summary: 'Follow a request to its end as server-sent events',
    description: 'The objects of `…/status`, one for each change; the stream ends after the last.',
    params: z.object({ id: z.string() }),
    query: z.object({ logs: z.string().optional() }),
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
