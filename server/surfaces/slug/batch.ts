import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { invalidValue } from '../../../core/invalid-value.ts'
import { array, integer, namedObject, object, strictObject, string } from '../../../core/schemas/fields.ts'
import type { Call } from '../../http/request/call.ts'
import { JsonText } from '../../http/request/json-text.ts'
import { findRequest } from '../../views/generation-request.ts'
import { bodyStatusOf, queueStatusOf, requestView, slugRoute, type ViewOwners } from './view.ts'

const most = 50

const Ids = z.array(z.string().max(128)).max(1_000)
const BatchQuery = strictObject('GenerationBatchQuery', 'Requests to read.', {
  request_ids: Ids.optional().describe(`1 to ${most} request ids: \`q_…\`.`),
  ids: Ids.optional().describe('The same as `request_ids`.'),
})

const BatchView = namedObject('GenerationBatch', 'The states and results of several requests.', {
  requests: array(
    'The requests in the order of the ids, each once. With `?fields=status` without their results.',
    z.looseObject({
      request_id: string('Id of the request.'),
      status: z.enum(['processing', 'completed', 'failed', 'not_found']).describe('State of the request.'),
      queue_status: z
        .enum(['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED'])
        .optional()
        .describe('The same as in `GET /slug/requests/{id}/status`; absent if it was not found.'),
    }),
  ),
  counts: object('Numbers of requests by status.', {
    processing: integer('Requests that have not ended.'),
    completed: integer('Requests that completed.'),
    failed: integer('Requests that failed.'),
    not_found: integer('Requests that do not exist.'),
  }),
})

interface Entry extends Record<string, unknown> {
  request_id: string
  status: 'processing' | 'completed' | 'failed' | 'not_found'
}

/** Returns one request of the batch. One of another organization is `not_found`; an output that expired is an error. */
async function entryOf(request_id: string, call: Call, bare: boolean, owners: ViewOwners): Promise<Entry> {
  const errorOf = ({ code, message, type }: Failure) => ({ error: { code, message, type } })
  try {
    const job = await findRequest(request_id, call, owners)
    const head = { request_id, status: bodyStatusOf(job), queue_status: queueStatusOf(job) }
    if (bare) return head
    try {
      return { ...head, ...(await requestView(job, call, owners)), ...head }
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.code !== 'output_expired') throw thrown
      return { ...head, ...errorOf(failure) }
    }
  } catch (thrown) {
    const failure = Failure.from(thrown)
    if (failure.status !== 404 && failure.status !== 410) throw thrown
    return { request_id: request_id.slice(0, 64), status: 'not_found', ...errorOf(failure) }
  }
}

/** The route that reads up to 50 requests at once. */
export const batchRoutes = (owners: ViewOwners) => [
  slugRoute('POST /slug/requests/batch', 'user:read', {
    bucket: 'jobs',
    summary: 'Get requests',
    description:
      'Returns up to 50 requests at once, in the order of the ids. Requests that do not exist have the status `not_found`.',
    query: z.strictObject({ fields: z.enum(['status']).optional().describe('`status`: without results.') }),
    body: BatchQuery,
    example: { request_ids: ['q_01K0000000000000000000000A'] },
    response: BatchView,
    handle: async ({ body, query }, call) => {
      const field = body.request_ids === undefined && body.ids !== undefined ? 'ids' : 'request_ids'
      const given = body[field]
      if (given === undefined)
        throw new Failure('missing_required_parameter', `Missing required parameter: '${field}'.`, { param: field })
      const ids = [...new Set(given)]
      if (ids.length === 0 || ids.length > most)
        throw invalidValue(field, `'${field}' must hold 1 id or more, and at most ${most}.`)
      const requests = await Promise.all(ids.map(id => entryOf(id, call, query.fields === 'status', owners)))
      const count = (wanted: Entry['status']) => requests.filter(({ status }) => status === wanted).length
      const counts = {
        processing: count('processing'),
        completed: count('completed'),
        failed: count('failed'),
        not_found: count('not_found'),
      }
      return new JsonText(JSON.stringify({ requests, counts }))
    },
  }),
]
