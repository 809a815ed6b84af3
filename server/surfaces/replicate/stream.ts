import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { isId, jobIdOf } from '../../../core/ids.ts'
import { optionalString, string } from '../../../core/schemas/fields.ts'
import { openEventStream } from '../../http/answer/sse.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'
import { hasEnded } from '../../views/job-record.ts'
import { replicateRoute } from './errors.ts'
import { errorOfPrediction, outputOfPrediction } from './view.ts'

const pingMs = 10_000
const minIntervalMs = 100

type StreamOwners = Pick<Owners, 'files' | 'jobs'>

/** An event may have several lines of data. */
const lines = (text: string): string => text.replaceAll(/\r?\n/g, '\ndata: ')

async function stream(call: Call, { files, jobs }: StreamOwners): Promise<void> {
  const { id = '', org: organization = '' } = call.params
  const { query } = call
  if (!files.verify(id, query.get('exp') ?? '', query.get('sig') ?? ''))
    throw new Failure(
      'invalid_signature',
      'The signature of this URL is invalid or has expired. Read the prediction again for a new URL.',
    )
  const first = isId(id) ? await jobs.find(organization, jobIdOf(id)) : undefined
  if (!first) throw new Failure('not_found', `Prediction ${id.slice(0, 64)} was not found.`)
  const events = await openEventStream(call, { pingMs, generation: true })
  let wake: (() => void) | undefined
  const stop = jobs.follow(first.id, () => wake?.())
  let logged = 0
  try {
    while (!events.ended) {
      const woken = new Promise<void>(resolve => (wake = resolve))
      const job = await jobs.find(organization, first.id)
      if (!job) throw new Failure('not_found', `Prediction ${id} was removed while it was streamed.`)
      const logs = await jobs.logs(job)
      for (const { message } of logs.slice(logged)) events.send({ event: 'logs', data: lines(message) })
      logged = Math.max(logged, logs.length)
      if (hasEnded(job)) {
        const error = errorOfPrediction(job)
        const output = job.status === 'completed' ? await outputOfPrediction(job, call, { files, jobs }) : []
        for (const one of [output].flat())
          events.send({ event: 'output', data: lines(typeof one === 'string' ? one : JSON.stringify(one)) })
        if (error !== null) events.send({ event: 'error', data: lines(error) })
        else
          events.send({ event: 'done', data: JSON.stringify(job.status === 'cancelled' ? { reason: 'canceled' } : {}) })
        break
      }
      await events.caughtUp()
      await Promise.race([events.over, woken])
      await new Promise(resolve => setTimeout(resolve, minIntervalMs))
    }
  } catch (thrown) {
    const failure = Failure.from(thrown)
    events.send({ event: 'error', data: lines(failure.message) })
    throw failure
  } finally {
    stop()
    events.end()
  }
}

/** The route that streams predictions. */
export const predictionStreamRoutes = (owners: StreamOwners) => [
  replicateRoute('GET /replicate/v1/stream/:org/:id', 'public', {
    summary: 'Stream prediction',
    description:
      'Sends `logs` while a prediction runs, `output` when it has ended, and `done` or `error` at the end. The address is `urls.stream` of a prediction, whose signature is the right to read it.',
    media: ['text/event-stream'],
    errorCodes: ['invalid_signature', 'not_found', 'shutting_down'],
    params: z.object({
      org: string('Id of the organization of the prediction.'),
      id: string('Id of the prediction.'),
    }),
    query: z.object({
      exp: optionalString('When the address expires.'),
      sig: optionalString('Signature of the address.'),
    }),
    answer: call => stream(call, owners),
  }),
]
