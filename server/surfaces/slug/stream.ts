import { z } from 'zod'
import { queueIdOf } from '../../../core/ids.ts'
import { optionalString, string } from '../../../core/schemas/fields.ts'
import { findRequest } from '../../views/generation-request.ts'
import { streamStatus, wantsLogs } from '../../work/stream-status.ts'
import { slugRoute } from './errors.ts'
import { statusView, type ViewOwners } from './view.ts'

export const streamRoutes = (owners: ViewOwners) => [
  slugRoute('GET /slug/requests/:id/status/stream', 'user:read', {
    summary: 'Stream status of request',
    description:
      'The answer is a stream of server-sent events: the status of the request after each change, until its end. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event.',
    events: 'GenerationStatus',
    errorCodes: ['not_found', 'output_expired'],
    params: z.object({ id: string('Id of the request: `q_…`.') }),
    query: z.strictObject({
      logs: optionalString('`1` or `true`: send the log of the request too.'),
    }),
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
