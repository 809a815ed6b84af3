import { type FailureCode, failures } from '../../core/failure.ts'
import { type AnyEndpoint, refusesUnknown } from '../http/request/endpoint.ts'
import type { Route } from '../http/request/route.ts'

/** What each error code means to a caller: the table of errors in the reference. */
export const errorCodes: Readonly<Record<FailureCode, string>> = {
  invalid_json: 'The body is not JSON. Check quotes, commas and encoding (UTF-8).',
  missing_required_parameter: 'A required field is absent. `param` names it.',
  invalid_type: 'A field has the wrong type. `param` names it.',
  invalid_value: 'A field has a value that is not allowed. `param` names it, the message says what is allowed.',
  string_above_max_length: 'A text is too long. `param` names the field.',
  array_above_max_length: 'A list has too many entries. `param` names the field.',
  unknown_parameter: 'A field or query parameter does not exist. The message names the nearest one that does.',
  unsupported_parameter:
    'The model, its engine or this server does not support a field. Leave it out or use another model.',
  invalid_graph: 'The workflow cannot be executed. `details` lists why; `POST /api/workflows/validate` shows the same.',
  unresolved_reference: 'A reference of a workflow node has no value. The message names it.',
  unsupported_task: 'The model does not do this task. The message names models that do.',
  invalid_image: 'An image cannot be read, or is too large.',
  invalid_video: 'A video cannot be read, or is too large.',
  invalid_audio: 'Audio cannot be read, or is too long.',
  url_fetch_failed: 'A media URL could not be fetched, or is not allowed (see `media` in `infer.yaml`).',
  context_length_exceeded: 'The prompt is longer than the context of the model. Shorten it.',
  invalid_scope: 'A scope does not exist.',
  invalid_host: 'The server is not reached under this host name. Add it to `allowed_hosts` in `infer.yaml`.',
  missing_api_key: 'The request has no token. Send `Authorization: Bearer <token>`.',
  invalid_api_key: 'The token does not exist.',
  token_revoked: 'The token was revoked or is disabled.',
  token_expired: 'The token has expired.',
  insufficient_scope: 'The token lacks the scope that `required_scope` names.',
  model_not_allowed: 'The token may not use this model.',
  region_restricted: 'The organization is restricted to a region, and the model runs elsewhere.',
  organization_mismatch: 'The token belongs to another organization than the one that may do this.',
  outside_allowed_hours:
    'The token may not be used at this time. `opens_at` is when it may be used again, in Unix seconds.',
  storage_full:
    'The files of the organization have the size that it may store. Delete jobs with their files, or videos of the library.',
  role_not_allowed: 'The role of the user to whom the token belongs does not allow this.',
  organization_disabled: 'The organization of the token is suspended.',
  origin_not_allowed: 'Web pages of this origin may not use the API. Add it to `cors.origins` in `infer.yaml`.',
  invalid_signature: 'The signed address was changed or has expired. Get a new one.',
  previous_response_not_found: 'The response that this one continues is not kept. Send the whole conversation.',
  not_found: 'The object does not exist, or belongs to another organization.',
  model_not_found: 'The model does not exist. The message names similar ones.',
  unknown_url: 'The path does not exist.',
  method_not_allowed: 'The path exists, but not with this method. The header `Allow` lists the methods.',
  conflict: 'The state of the object does not allow this. The message says what to do first.',
  version_conflict: 'The workflow or the conversation was changed since it was read. Read it again.',
  execution_already_finished: 'The execution has already ended.',
  batch_not_cancellable: 'The batch has ended, or its output files are being written.',
  job_already_finished: 'The job has already ended.',
  idempotency_key_in_use:
    'A request with this `Idempotency-Key` is being processed. Send it again later. `job_id` is the job that it runs as.',
  output_expired: 'The object was deleted, or its retention is over.',
  payload_too_large: 'The body or a file is too large. The message names the limit.',
  unsupported_media_type:
    'The `Content-Type` is not accepted. Send `application/json`, or a form where one is documented.',
  idempotency_key_reused: 'The `Idempotency-Key` was used with another body. Use a new key.',
  rate_limit:
    'A rate limit of the token or its organization is reached. Wait for `Retry-After` seconds. `limit` and `limit_of` say which.',
  quota_exceeded:
    'The monthly spend limit of the organization or of the token is reached. `reset_at` has the Unix seconds of the next month.',
  queue_full:
    'Too many requests wait for the model, or the organization has as many jobs as it may. Wait for `Retry-After` seconds.',
  cancelled: 'The job was cancelled, or the client disconnected.',
  internal_error: 'An error inside infer. The log has the cause under `request_id`.',
  worker_error: 'The engine failed to answer. The same request may succeed later.',
  model_load_failed:
    'The engine can never load the files of the model, as the message says. Do not send the request again before they or the settings of the model were changed.',
  model_warming_up: 'The model, or the server, is still starting. Wait for `Retry-After` seconds.',
  no_capacity: 'There is no free memory or slot now. Wait for `Retry-After` seconds.',
  disk_full: 'The disk of the server is full.',
  shutting_down: 'The server is stopping. Send the request again after `Retry-After` seconds.',
  timeout: 'The time for the request is over. A job with an id continues: read it later.',
  worker_crashed: 'The engine or the server crashed several times on this request. Do not send it again unchanged.',
}

const ofToken: readonly FailureCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'token_revoked',
  'token_expired',
  'insufficient_scope',
  'organization_disabled',
  'outside_allowed_hours',
  'rate_limit',
]
const ofValues: readonly FailureCode[] = ['invalid_type', 'invalid_value', 'string_above_max_length']
const ofBody: readonly FailureCode[] = [
  ...ofValues,
  'invalid_json',
  'missing_required_parameter',
  'array_above_max_length',
  'payload_too_large',
  'unsupported_media_type',
]
/** For all routes: the server starts, stops, fails, or does not accept the host name. */
const ofServer: readonly FailureCode[] = ['invalid_host', 'internal_error', 'model_warming_up', 'shutting_down']

/** Returns the codes that a route can answer, those that follow from its scope and its schemas included. */
export function errorCodesOf(route: AnyEndpoint): ReadonlySet<FailureCode> {
  const { scope, body, form, query, path, errorCodes = [] } = route
  return new Set<FailureCode>([
    ...errorCodes,
    ...ofServer,
    ...(scope === 'public' ? [] : ofToken),
    ...(query ? ofValues : []),
    ...(body || form ? ofBody : []),
    ...(refusesUnknown(path) ? ['unknown_parameter' as const] : []),
    ...(form ? (['disk_full', 'storage_full'] as const) : []),
  ])
}

/**
 * Returns the status of a failure as the route answers it: fal's clients expect 422 for a wrong body, and Anthropic's 529
 * where others answer 503.
 */
export function errorStatus(code: FailureCode, { path, body }: AnyEndpoint): number {
  const { status } = failures[code]
  if (status === 503 && path.startsWith('/anthropic/')) return 529
  return status === 400 && body && path.startsWith('/fal/') ? 422 : status
}

/** Returns the codes with this status that every route with a scope can answer. */
export const commonCodes = (status: number): readonly FailureCode[] =>
  [...ofToken, ...ofServer].filter(code => failures[code].status === status)

type JsonSchema = Readonly<Record<string, unknown>>

const text = (description: string) => ({ type: 'string', description })
const integer = (description: string) => ({ type: 'integer', description })
const nullable = (type: string, description: string) => ({ type: [type, 'null'], description })
/** `required`: names of the members that are always there; default: all. */
const members = (properties: Readonly<Record<string, JsonSchema>>, required = Object.keys(properties)) => ({
  properties,
  required,
})
const object = (description: string, ...of: Parameters<typeof members>) => ({
  type: 'object',
  description,
  ...members(...of),
})

/** JSON Schemas of error bodies. They are plain objects, because nothing is checked against them at run time. */
export function errorSchemas(): Record<string, object> {
  const codes = Object.keys(failures) as (keyof typeof failures)[]
  const types = [...new Set(codes.map(code => failures[code].type))]
  const table = codes.map(code => `| \`${code}\` | ${failures[code].status} | ${errorCodes[code]} |`)
  const facts = { $ref: '#/components/schemas/Error' }
  const message = text('The same as `error.message`.')
  const sentences = text('What happened and what to do next, as sentences.')
  const fault = {
    type: 'object',
    ...members(
      {
        loc: {
          type: 'array',
          description: 'Path of the field, beginning with `body` or `header`.',
          items: { type: ['string', 'integer'] },
        },
        msg: text('What is wrong with it.'),
        type: text('Kind of the fault.'),
        ctx: { type: 'object', description: 'Limits that were exceeded.' },
        input: { description: 'The value that was sent, shortened.' },
      },
      ['loc', 'msg', 'type'],
    ),
  }
  const detail = {
    description: 'The wrong fields in the form of FastAPI, or the message.',
    anyOf: [{ type: 'string' }, { type: 'array', items: fault }],
  }
  return {
    Error: object(
      'The error.',
      {
        code: {
          type: 'string',
          enum: codes,
          description: ['What went wrong:', '', '| code | status | meaning |', '|---|---|---|', ...table].join('\n'),
        },
        message: sentences,
        type: { type: 'string', enum: types, description: 'Class of the error.' },
        param: nullable('string', 'Path of the field that is wrong, such as `messages[0].content`; else null.'),
        request_id: text('Id of the request, as in the header `x-request-id`. The log of the server has it too.'),
        retry_after: integer('Seconds after which to try again, as in `Retry-After`. Absent if a retry does not help.'),
        details: {
          type: 'array',
          description: 'All wrong fields, if there are several.',
          items: {
            type: 'object',
            ...members({
              path: text('Path of the field.'),
              message: text('What is wrong with it.'),
              code: text('Error code of this field.'),
            }),
          },
        },
        required_scope: text('Scope that the token lacks, with `insufficient_scope`.'),
        eta_seconds: nullable(
          'integer',
          'Expected seconds until the model is loaded, with `model_warming_up`; null if unknown. `Retry-After` is earlier where the load begins with the next request.',
        ),
        failed_starts: integer('How many times in a row the engine of the model failed to start.'),
        job_id: text(
          'Id of the job that continues, with `timeout`; of the first request with the same `Idempotency-Key`, with `idempotency_key_in_use`, once it has one, and with `conflict`.',
        ),
        status_url: text('Where to read that job.'),
      },
      ['code', 'message', 'type', 'param', 'request_id'],
    ),
    ErrorResponse: object('An error.', { error: facts }),
    SlugErrorResponse: object("An error of the slug API: the common form, with the fields that fal's clients read.", {
      error: facts,
      message,
      detail,
    }),
    AnthropicErrorResponse: object('An error of the Anthropic-compatible API.', {
      type: { type: 'string', const: 'error', description: 'Always `error`.' },
      error: object(
        'The error.',
        {
          type: text("Class of the error in Anthropic's terms, such as `invalid_request_error`."),
          message: sentences,
          code: text('Code of the error, as in the other parts of this API.'),
          param: nullable('string', 'The wrong field; null if there is none.'),
          job_id: text(
            'Id of the job of the first request with the same `Idempotency-Key`, with `idempotency_key_in_use` and `conflict`.',
          ),
        },
        ['type', 'message', 'code', 'param'],
      ),
      request_id: text('Id of the request.'),
    }),
    FalErrorResponse: object(
      'An error of the fal-compatible API.',
      {
        detail,
        message: sentences,
        error_type: text("Class of the error in fal's terms, such as `request_timeout`."),
        error: facts,
      },
      ['detail', 'message'],
    ),
  }
}

/** Returns the name of the schema in which a route answers errors. */
export const errorSchemaOf = ({ path }: Route): string =>
  Object.entries(ofPrefix).find(([prefix]) => path.startsWith(prefix))?.[1] ?? 'ErrorResponse'

const ofPrefix = {
  '/fal/': 'FalErrorResponse',
  '/slug/': 'SlugErrorResponse',
  '/anthropic/': 'AnthropicErrorResponse',
}
