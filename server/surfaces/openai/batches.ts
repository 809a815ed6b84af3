import { z } from 'zod'
import { shortEndpoint, slugIn } from '../../../core/batches/batch-line.ts'
import { invalid } from '../../../core/failure.ts'
import { isId } from '../../../core/ids.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  nullish,
  object,
  oneOf,
  optionalString,
  string,
} from '../../../core/schemas/fields.ts'
import { type BatchRecord, batchStatuses } from '../../../core/store/store.ts'
import { listPage } from '../../http/answer/page.ts'
import { errorGroups, found } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import { idempotencyOf } from '../../http/request/idempotency.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { seconds, viewOf } from '../../views/view-of.ts'
import { batchPaths } from './batch-endpoints.ts'

const at = (what: string) => nullableInteger(`Unix seconds when it ${what}; null if it did not.`)
const tokens = (what: string) => integer(what)

const BatchFaultObject = z.object({
  code: string('What is wrong, such as `duplicate_custom_id`.'),
  message: string('The same as a sentence.'),
  param: nullableString('Member of the line; null if none is named.'),
  line: nullableInteger('Number of the line, from 1; null for the whole file.'),
})

const BatchObject = namedObject('Batch', 'A file of requests that run in the background.', {
  id: string('Id of the batch: `batch_…`.'),
  object: z.literal('batch'),
  endpoint: string('Endpoint of all lines.'),
  model: nullableString('Model of the first line; null before the file was checked.'),
  errors: nullable(
    z.object({
      object: z.literal('list'),
      data: array('At most 100 of them, in the order of the file.', BatchFaultObject),
    }),
    'What is wrong with the input file; null if nothing is.',
  ),
  input_file_id: string('Id of the input file.'),
  completion_window: string('Time in which the batch is to end, such as `24h`.'),
  status: oneOf('State of the batch.', batchStatuses),
  output_file_id: nullableString('File with the answers; null before the end and without any.'),
  error_file_id: nullableString('File with the errors of the other lines; null before the end and without any.'),
  created_at: integer('Unix seconds.'),
  in_progress_at: at('began to run'),
  expires_at: integer('Unix seconds after which lines that have not ended are given up.'),
  finalizing_at: at('began to write its output files'),
  completed_at: at('completed'),
  failed_at: at('failed: its input file is invalid, or it could not go on'),
  expired_at: at('expired'),
  cancelling_at: at('began to cancel'),
  cancelled_at: at('was cancelled'),
  request_counts: object('How many lines there are, and what became of them so far.', {
    total: integer('Lines of the input file; 0 before it was checked.'),
    completed: integer('Lines with an answer.'),
    failed: integer('Lines that failed, or were not executed by the end.'),
  }),
  usage: object('What its lines have used so far.', {
    input_tokens: tokens('Input tokens.'),
    input_tokens_details: object('What is known of the input tokens.', {
      cached_tokens: tokens('Reused from the cache of the engine.'),
    }),
    output_tokens: tokens('Output tokens.'),
    output_tokens_details: object('What is known of the output tokens.', {
      reasoning_tokens: tokens('Part of them that is reasoning.'),
    }),
    total_tokens: tokens('Both together.'),
  }),
  metadata: nullable(z.record(z.string(), z.string()), 'Your own key-value pairs; null if none were sent.'),
})

/** Returns a batch as the API shows it. */
function batchObject(batch: BatchRecord): z.input<typeof BatchObject> {
  const { status, usage } = batch
  const endedAs = (ending: BatchRecord['status']) => (status === ending ? seconds(batch.finishedAt) : null)
  const hasFiles = batch.finishedAt !== null && status !== 'failed'
  return viewOf(BatchObject, batch, {
    model: batch.modelId,
    errors: batch.faults && { object: 'list', data: batch.faults },
    output_file_id: hasFiles && batch.completed > 0 ? batch.outputFileId : null,
    error_file_id: hasFiles && batch.failed > 0 ? batch.errorFileId : null,
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
    metadata: batch.metadata === null ? null : (JSON.parse(batch.metadata) as Record<string, string>),
  })
}

const route = routeOf({ tag: 'Batches' })
const base = '/std/v1/batches'
const hourMs = 3_600_000

const Create = namedObject('BatchCreate', 'A batch to run.', {
  input_file_id: z
    .string()
    .max(64)
    .describe(
      'Id of a file with the purpose `batch`: JSON Lines, one request in each line, at most 50,000 and 200 MiB.',
    ),
  endpoint: z
    .string()
    .max(600)
    .describe(
      'Endpoint of all lines: `/v1/chat/completions`, `/v1/embeddings`, …, or `slug/` and the slug of a model.',
    ),
  completion_window: z
    .string()
    .regex(/^(?:[1-9]|[1-9]\d|1[0-5]\d|16[0-8])h$/, 'must be 1h to 168h, such as 24h.')
    .describe('Time in which the batch is to end, `1h` to `168h`. Lines that have not ended then are given up.'),
  metadata: nullish(
    z
      .record(z.string().max(64), z.string().max(512))
      .refine(pairs => Object.keys(pairs).length <= 16, 'may have at most 16 pairs.'),
    'Your own key-value pairs, at most 16.',
  ),
  output_expires_after: nullish(
    z.object({
      anchor: z
        .literal('created_at')
        .describe('When the time begins: when the file is created, which is the end of the batch.'),
      seconds: z.int().min(3_600).max(2_592_000).describe('Seconds, an hour to 30 days.'),
    }),
    'How long the output files are kept. Default: until they are deleted.',
  ),
})

const List = namedObject('BatchList', 'A page of batches.', {
  object: z.literal('list'),
  data: array('The batches, newest first.', BatchObject),
  first_id: nullableString('Id of the first entry; null without any.'),
  last_id: nullableString('Id of the last entry; null without any.'),
  has_more: boolean('Whether there are more entries.'),
})

const One = z.object({ id: string('Id of the batch: `batch_…`.') })

const isBatchId = (id: string) => isId(id, 'batch_')

type BatchOwners = Owners<'batches' | 'files' | 'registry'>

/** Throws Failure `invalid_value` for an endpoint that lines cannot have. */
function endpointOf(given: string, { batches }: BatchOwners) {
  const endpoint = shortEndpoint(given)
  if (batches.endpoint(endpoint)) return endpoint
  const instead =
    slugIn(endpoint) !== undefined
      ? 'There is no model with this slug. GET /api/model-status lists the existing ones.'
      : `Batches can have ${batchPaths.join(', ')}, and slug/ with the slug of a model.`
  throw invalid('endpoint', `'endpoint' cannot be ${given.slice(0, 128)}. ${instead}`)
}

async function create(body: z.output<typeof Create>, exchange: ClientExchange, owners: BatchOwners) {
  const { organizationId, tokenId, region } = exchange.caller
  const { input_file_id: inputFileId, completion_window: completionWindow, metadata, output_expires_after: kept } = body
  const endpoint = endpointOf(body.endpoint, owners)
  const file = isId(inputFileId) ? await owners.files.api.find(organizationId, inputFileId) : undefined
  if (!file) throw invalid('input_file_id', `No such File object: ${inputFileId.slice(0, 64)}`, 'not_found')
  if (file.apiPurpose !== 'batch')
    throw invalid(
      'input_file_id',
      `The file ${inputFileId} has the purpose '${file.apiPurpose}'. Upload it with the purpose 'batch'.`,
    )
  const createdAt = Date.now()
  return owners.batches.create({
    organizationId,
    tokenId,
    endpoint,
    inputFileId,
    completionWindow,
    outputLifetimeMs: kept ? kept.seconds * 1000 : null,
    metadata: metadata ? JSON.stringify(metadata) : null,
    region: region ?? null,
    origin: exchange.origin,
    traceparent: exchange.traceparent ?? null,
    createdAt,
    expiresAt: createdAt + Number.parseInt(completionWindow, 10) * hourMs,
    idempotency: idempotencyOf(exchange, body),
  })
}

export const batchJobRoutes = (owners: BatchOwners) => [
  route(`POST ${base}`, 'user:write', {
    bucket: 'jobs',
    summary: 'Create batch',
    description:
      'Runs the requests of a file in the background, after all other work. Each line is `{"custom_id": "…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}`. The file is checked first: with a wrong line the batch fails, `errors` names the lines, and no line runs. The answers are in the file `output_file_id`, the errors of lines in `error_file_id`, in any order. A batch that was accepted survives crashes and restarts. Upload the file with `POST /std/v1/files`.',
    errorCodes: [...errorGroups.submit, 'not_found'],
    body: Create,
    example: { input_file_id: 'file-01KAPT31G0W9YV5QXJ7Q2N4C5D', endpoint: '/v1/embeddings', completion_window: '24h' },
    response: BatchObject,
    handle: async ({ body }, exchange) => batchObject(await create(body, exchange, owners)),
  }),
  route(`GET ${base}`, 'user:read', {
    summary: 'List batches',
    description: 'Returns the batches of the organization, newest first.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(100).default(20).describe('Most entries of the page, 1 to 100.'),
      after: optionalString('Id of the last batch of the page before. Default: the first page.'),
      order: z.enum(['asc', 'desc']).default('desc').describe('`desc`: newest first. `asc`: oldest first.'),
    }),
    response: List,
    handle: async ({ query: { limit, after, order } }, exchange) => {
      if (after !== undefined && !isBatchId(after)) throw invalid('after', "'after' must be the id of a batch.")
      const page = { limit: limit + 1, after, oldestFirst: order === 'asc' }
      const batches = await owners.batches.list(exchange.caller.organizationId, page)
      return listPage(batches.slice(0, limit).map(batchObject), batches.length > limit)
    },
  }),
  route(`GET ${base}/:id`, 'user:read', {
    summary: 'Get batch',
    description: 'Returns a batch with the counts of its lines.',
    errorCodes: ['not_found'],
    params: One,
    response: BatchObject,
    handle: async ({ params: { id } }, { caller }) =>
      batchObject(found(isBatchId(id) && (await owners.batches.find(caller.organizationId, id)), 'Batch', id)),
  }),
  route(`POST ${base}/:id/cancel`, 'user:write', {
    bucket: 'api',
    summary: 'Cancel batch',
    description:
      'Cancels the lines that have not ended. The state is `cancelling`, then `cancelled`; the answers of the other lines are kept.',
    errorCodes: ['not_found', 'batch_not_cancellable', 'disk_full'],
    params: One,
    response: BatchObject,
    handle: async ({ params: { id } }, { caller }) =>
      batchObject(found(isBatchId(id) && (await owners.batches.cancel(caller.organizationId, id)), 'Batch', id)),
  }),
]
