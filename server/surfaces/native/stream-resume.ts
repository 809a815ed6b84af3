import { z } from 'zod'
import { Failure, invalid } from '../../../core/failure.ts'
import { optionalString, string } from '../../../core/schemas/fields.ts'
import { eventsHead } from '../../http/answer/sse.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'Jobs' })

/** Returns the number of the first event that the client lacks. */
function nextEvent({ req, query }: ClientExchange): number {
  const header = req.headers['last-event-id']
  const given = typeof header === 'string' && header !== '' ? header : (query.get('after') ?? '0')
  if (!/^\d{1,9}$/.test(given))
    throw invalid('after', `'after' must be the id of the last event that you have, such as 42.`)
  return Number(given) + 1
}

/** The route that continues a stream after its connection was lost. */
export const streamResumeRoutes = ({ resumable }: Owners<'resumable'>) => [
  route('GET /api/jobs/:id/stream', 'user:read', {
    eventStream: true,
    summary: 'Resume stream of request',
    description:
      'Continues the stream of a request that was sent with `Prefer: resume=60`: its answer has the header `preference-applied`, its events have ids, and its job is in `x-job-id`. Send the id of the last event that you have as `Last-Event-ID` or `?after=`; without it the stream comes from its start. Such a request goes on without its client for so many seconds (600 at most), is kept in memory so long after its end, and is charged like any other. Only the token that sent it can resume it, and one connection reads it at a time. Of a stream 8 MB are kept.',
    media: ['text/event-stream'],
    errorCodes: ['not_found', 'output_expired', 'invalid_value'],
    params: z.object({ id: string('Id of the job of the request: `job_…`.') }),
    query: z.strictObject({
      after: optionalString('Id of the last event that you have. The header `Last-Event-ID` wins.'),
    }),
    async answer(exchange) {
      const next = nextEvent(exchange)
      const id = exchange.params.id ?? ''
      const stream = resumable.find(id, exchange.caller.tokenId)
      if (!stream)
        throw new Failure(
          'not_found',
          `There is no stream of ${id.slice(0, 64)} to resume: it was not sent with 'Prefer: resume=…' by this token, or its time is over.`,
        )
      stream.requireEvent(next)
      exchange.streamLimits.take(exchange)
      exchange.header('x-job-id', id).head(200, ...eventsHead)
      await stream.resume(exchange, next)
    },
  }),
]
