import { z } from 'zod'
import { chatBodyOf } from '../../../../core/dialects/chat-forms.ts'
import { promptTokens } from '../../../../core/dialects/prompt-tokens.ts'
import { continuedLength, nothingContinued } from '../../../../core/dialects/responses/continuation.ts'
import type { RememberedResponse } from '../../../../core/dialects/responses/response-object.ts'
import { ResponseItem, ResponseObject, ResponseRequest } from '../../../../core/dialects/responses/response-schemas.ts'
import { Failure, invalid } from '../../../../core/failure.ts'
import { newId } from '../../../../core/ids.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullableString,
  optional,
  optionalOneOf,
  optionalString,
  string,
} from '../../../../core/schemas/fields.ts'
import { deletedAnswer, deletedObject } from '../../../http/answer/page.ts'
import { errorGroups } from '../../../http/request/errors.ts'
import type { ClientExchange } from '../../../http/request/exchange.ts'
import { JsonText } from '../../../http/request/json-text.ts'
import type { Owners } from '../../../http/request/owners.ts'
import { routeOf } from '../../../http/request/route.ts'
import { allowedChatModel } from '../../../work/allowed-models.ts'
import { type FormState, type InferenceOwners, inferenceRouteOf } from '../../../work/inference.ts'
import { type BackgroundOwners, streamBackground, submitBackground } from './background.ts'

/** Bytes around a member that are read: an id is close to it. */
const around = 160
/** The most places that are read; what further ones name is refused as absent. */
const maxFound = 256
const previous = /"previous_response_id"\s*:\s*"(resp_[0-9A-Z]{26})"/
const item = /"id"\s*:\s*"([a-z]+_[0-9A-Z]{26}[io]\d{1,6})"/g

/** Yields the text around each place of the body that has the mark. Searching bytes is fast, also in large bodies. */
function* near(body: Buffer, mark: string): Generator<string> {
  let found = 0
  for (let at = body.indexOf(mark); at >= 0 && found < maxFound; at = body.indexOf(mark, at + mark.length), found++)
    yield body.toString('latin1', Math.max(0, at - around), at + mark.length + around)
}

/**
 * Reads the stored conversations and items that the body of a request names. The body is searched and not parsed, because
 * it may be large; an id that only looks like one costs a lookup.
 */
async function continuedBy(exchange: ClientExchange, body: Buffer, { responses }: Owners<'responses'>) {
  const responseIds = new Set<string>()
  const itemIds = new Set<string>()
  for (const text of near(body, '"previous_response_id"')) {
    const id = previous.exec(text)?.[1]
    if (id !== undefined) responseIds.add(id)
  }
  for (const text of near(body, '"item_reference"')) for (const [, id] of text.matchAll(item)) itemIds.add(id!)
  if (responseIds.size === 0 && itemIds.size === 0) return nothingContinued
  return await responses.continued(exchange.caller.organizationId, {
    responseIds: [...responseIds].slice(0, 1),
    itemIds: [...itemIds],
  })
}

const ResponseDeleted = deletedObject(
  'ResponseDeleted',
  'Confirms that a response was deleted.',
  ['response.deleted', 'response'],
  {},
)

const ResponseItems = namedObject('ResponseItemList', 'A page of the items of an input.', {
  object: z.literal('list'),
  data: array('The items.', ResponseItem),
  first_id: nullableString('Id of the first item; null if there is none.'),
  last_id: nullableString('Id of the last item; null if there is none.'),
  has_more: boolean('Whether there are more after these.'),
})

const ResponseTokens = namedObject('ResponseInputTokens', 'How many tokens an input has, estimated.', {
  object: z.literal('response.input_tokens'),
  input_tokens: integer('Estimated tokens of the input.'),
})

const route = routeOf({ tag: 'Text' })
const base = '/std/v1/responses'
const One = z.object({ id: string('Id of the response: `resp_…`.') })
const ofResponse = { params: One, errorCodes: ['not_found', 'output_expired'] } as const

type ResponseOwners = InferenceOwners & BackgroundOwners & Owners<'log'>

async function found(id: string, exchange: ClientExchange, { responses }: ResponseOwners) {
  const stored = await responses.find(exchange.caller.organizationId, id)
  if (stored) return stored
  throw invalid(
    'id',
    `There is no response '${id.slice(0, 64)}'. Only responses created with "store": true are kept, until they expire.`,
    'not_found',
  )
}

/** Begins a response: submits one in the background as a job, or returns what it continues and how it is kept. */
async function begin(exchange: ClientExchange, body: Buffer, owners: ResponseOwners): Promise<FormState | undefined> {
  const continued = await continuedBy(exchange, body, owners)
  const background = await submitBackground(exchange, body, continued, owners)
  if (background) {
    const { stored, streams } = background
    if (streams) await streamBackground(exchange, stored, -1, owners)
    else exchange.send(200, stored.text)
    return undefined
  }
  const { organizationId, token } = exchange.caller
  const createdAt = Date.now()
  return {
    context: { id: newId('resp'), ...continued },
    contextLength: continuedLength(continued),
    keep: async (remembered, answer) => {
      const response = remembered as RememberedResponse
      if (!response.isStored) return
      const made = { organizationId, tokenId: token.id, createdAt, answer, jobId: null }
      await owners.responses
        .keep(response, made)
        .catch((cause: unknown) => owners.log.warn('A response could not be kept', { response: response.id }, cause))
    },
  }
}

/** The route that creates responses; `begins` as in `inferenceRouteOf`. */
export const responseRoute = (
  owners: InferenceOwners,
  begins: (exchange: ClientExchange, body: Buffer) => Promise<FormState | undefined>,
) =>
  inferenceRouteOf(route, owners)(`POST ${base}`, {
    dialect: 'responses',
    begin: begins,
    summary: 'Create response',
    description:
      "Answers a conversation in the form of OpenAI's Responses API: input items, instructions, function tools, structured output. With `store` (default) the response is kept for 30 days, or as `limits.response_retention` says, and a later one continues it by `previous_response_id`. With `stream: true` the answer is a stream of typed events. With `background: true` it becomes a durable job, and the answer is the response as it is queued.",
    events: 'ResponseEvent',
    errorCodes: errorGroups.media,
    body: ResponseRequest,
    example: { model: 'infer/tiny-chat', input: 'Hello!' },
    response: ResponseObject,
  })

/** The routes of responses, OpenAI's form of conversations that the server may keep. */
export const responseRoutes = (owners: ResponseOwners) => [
  responseRoute(owners, (exchange, body) => begin(exchange, body, owners)),
  route(`POST ${base}/input_tokens`, 'user:write', {
    bucket: 'api',
    summary: 'Get token count of response',
    description:
      'Estimates how many tokens the input of a response has, without running it: one for each three bytes of text, tools and the conversation that it continues included, and 1000 for each image or file. Most tokenizers need fewer. `usage` of an answer has the exact count.',
    errorCodes: [...errorGroups.model, 'not_found', 'previous_response_not_found', 'unsupported_parameter'],
    body: ResponseRequest,
    largeBody: true,
    example: { model: 'infer/tiny-chat', input: 'Hello!' },
    response: ResponseTokens,
    handle: async ({ body }, exchange) => {
      allowedChatModel(exchange, body.model, owners)
      const items = typeof body.input === 'string' ? [] : body.input
      const continued = await owners.responses.continued(exchange.caller.organizationId, {
        responseIds: body.previous_response_id ? [body.previous_response_id] : [],
        itemIds: items.flatMap(({ type, id }) => (type === 'item_reference' && id ? [id] : [])),
      })
      const { messages, tools } = chatBodyOf('responses', body, { id: '', ...continued }).body
      return {
        object: 'response.input_tokens' as const,
        input_tokens: promptTokens({ messages: messages as unknown[], tools }),
      }
    },
  }),
  route(`GET ${base}/:id`, 'user:read', {
    summary: 'Get response',
    description:
      'Returns a kept response. With `stream=true` a response in the background is streamed: its first events at once, the others when it has ended; `starting_after` leaves out those that the reader has.',
    ...ofResponse,
    events: 'ResponseEvent',
    query: z.object({
      stream: optionalOneOf('`true` streams a response in the background.', ['true', 'false']),
      starting_after: optional(z.coerce.number().int().min(0), 'Number of the last event that you have.'),
      include: optional(z.unknown(), 'Accepted for compatibility; has no effect.'),
      include_obfuscation: optional(z.unknown(), 'Accepted for compatibility; has no effect.'),
    }),
    response: ResponseObject,
    answer: async exchange => {
      const stored = await found(exchange.params.id!, exchange, owners)
      const { query } = exchange
      if (query.get('stream') !== 'true') return exchange.send(200, stored.text)
      if (!stored.job)
        throw invalid(
          'stream',
          "Only responses created with 'background' can be streamed again. Read this one without 'stream'.",
        )
      const after = Number(query.get('starting_after') ?? -1)
      if (!Number.isInteger(after)) throw invalid('starting_after', "'starting_after' must be the number of an event.")
      await streamBackground(exchange, stored, after, owners)
    },
  }),
  route(`DELETE ${base}/:id`, 'user:write', {
    summary: 'Delete response',
    description:
      'Deletes a kept response. One in the background is cancelled. Responses that continue it stay, but cannot be continued.',
    ...ofResponse,
    response: ResponseDeleted,
    handle: async ({ params: { id } }, exchange) => {
      const { record } = await found(id, exchange, owners)
      await owners.responses.remove(record.organizationId, record.id)
      return deletedAnswer('response.deleted', id)
    },
  }),
  route(`POST ${base}/:id/cancel`, 'user:write', {
    bucket: 'api',
    summary: 'Cancel response',
    description: 'Cancels a response in the background. One that has ended is returned as it is.',
    errorCodes: ['not_found', 'output_expired', 'conflict'],
    params: One,
    response: ResponseObject,
    handle: async ({ params: { id } }, exchange) => {
      const stored = await found(id, exchange, owners)
      if (!stored.job)
        throw new Failure(
          'conflict',
          `The response '${id}' was not created with 'background', so it cannot be cancelled.`,
        )
      return await owners.responses.cancel(stored)
    },
  }),
  route(`GET ${base}/:id/input_items`, 'user:read', {
    summary: 'List input items',
    description: 'Returns the items of the input of a kept response, newest first.',
    ...ofResponse,
    query: z.object({
      limit: z.coerce.number().int().min(1).max(100).default(20).describe('Most items of the page, 1 to 100.'),
      order: z.enum(['asc', 'desc']).default('desc').describe('`desc`: newest first.'),
      after: optionalString('Id of the last item of the page before. Default: the first page.'),
      include: optional(z.unknown(), 'Accepted for compatibility; has no effect.'),
    }),
    response: ResponseItems,
    handle: async ({ params: { id }, query: { limit, order, after } }, exchange) => {
      const { record } = await found(id, exchange, owners)
      return new JsonText(await owners.cpu.inputPage(record.input, { limit, order, after }))
    },
  }),
]
