import { z } from 'zod'
import type { FailureCode } from '../../core/failure.ts'
import type { RouteAnswer } from '../http/request/endpoint.ts'
import type { Route } from '../http/request/route.ts'
import { jsonSchemaOptions } from '../views/task-schemas.ts'
import { commonCodes, errorCodes, errorCodesOf, errorSchemaOf, errorStatus } from './errors.ts'
/** Recorded answers to the example requests, by operation id. */
export type AnswerExamples = Readonly<Record<string, unknown>>

/** Converts h3 paths such as `/models/**:id` and `/jobs/:id` to OpenAPI path templates. */
export const templateOf = (path: string): string => path.replace(/(?:\*\*)?:(\w+)/g, '{$1}')

/** Returns the id of the operation of a route, such as `getApiJobsId`. */
const operationIdOf = ({ method, path }: Route): string =>
  `${method.toLowerCase()}${path.replace(/[/:*{}._-]+([^\W_]?)/g, (_, letter: string) => letter.toUpperCase())}`

/** Returns the OpenAPI operation of a route. */
export function operation(route: Route, examples: AnswerExamples): Record<string, unknown> {
  const { tag, summary, description, scope, params, query } = route
  const operationId = operationIdOf(route)
  const startsWork = route.errorCodes?.includes('region_restricted')
  const isIdempotent = route.errorCodes?.includes('idempotency_key_reused')
  return {
    operationId,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    'x-scope': scope,
    ...(scope === 'public' ? { security: [] } : scope === 'loopback' ? { security: [{}, { token: [] }] } : {}),
    parameters: [
      ...parameters(params, 'path'),
      ...parameters(query, 'query'),
      ...(startsWork ? [{ $ref: '#/components/parameters/Region' }] : []),
      ...(isIdempotent ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ],
    ...(route.body || route.form || route.rawBody ? { requestBody: requestBody(route) } : {}),
    responses: joined(documentedAnswers(route, examples[operationId]), errorAnswers(route)),
  }
}

function parameters(schema: z.ZodType | undefined, where: 'path' | 'query') {
  if (!schema) return []
  // Named schemas are listed once, under components; zod repeats them under `$defs` of every schema.
  const text = JSON.stringify(z.toJSONSchema(schema, jsonSchemaOptions))
  const { properties = {}, required = [] } = JSON.parse(text.replaceAll('#/$defs/', '#/components/schemas/')) as {
    properties?: Record<string, { description?: string; type?: string }>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    ...(description ? { description } : {}),
    ...(property.type === 'object' ? { style: 'deepObject', explode: true } : {}),
    schema: property,
  }))
}

function requestBody({ body, form, rawBody, example }: Route) {
  const json = body as z.ZodType | undefined
  return {
    required: json || form ? !(json ?? form!).safeParse({}).success : true,
    content: {
      ...(json
        ? { 'application/json': { schema: schemaReference(json), ...(example ? { example: example as unknown } : {}) } }
        : {}),
      ...(form ? { 'multipart/form-data': { schema: schemaReference(form) } } : {}),
      ...(rawBody ? { [rawBody]: { schema: { type: 'string', format: 'binary', description: 'The bytes.' } } } : {}),
    },
  }
}

interface AnswerObject {
  $ref?: string
  description?: string
  content?: Record<string, { schema: object }>
}

/** Merges documented and error answers. A status that occurs in both gets both schemas. */
function joined(
  documented: Record<string, AnswerObject>,
  errors: Record<string, AnswerObject>,
): Record<string, AnswerObject> {
  const both = Object.entries(documented).flatMap(([status, answer]) => {
    const error = errors[status]
    const [success, failure] = [answer, error].map(one => one?.content?.['application/json']?.schema)
    if (!success || !failure) return []
    const description = `${answer.description}\n\n${error!.description}`
    return [
      [status, { description, content: { 'application/json': { schema: { anyOf: [success, failure] } } } }] as const,
    ]
  })
  return { ...documented, ...errors, ...Object.fromEntries(both) }
}

function documentedAnswers(route: Route, example: unknown): Record<string, AnswerObject> {
  const { response, events, media, otherAnswers = {} } = route
  const answer: RouteAnswer = { response: response as z.ZodType | undefined, events, media }
  const success = { [route.status ?? 200]: answerOf({ description: textOf(answer), ...answer }, example) }
  for (const [status, other] of Object.entries(otherAnswers)) success[Number(status)] = answerOf(other)
  return success
}

function textOf({ response, events, media }: RouteAnswer): string {
  const text = response && z.globalRegistry.get(response)?.description
  return [
    text,
    events && 'Server-sent events: each line `data:` has an object of this shape.',
    !text && !events && (media ? 'The bytes or the text.' : 'Done. The answer has no body.'),
  ]
    .filter(Boolean)
    .join(' ')
}

function answerOf({ description, response, events, media = [] }: RouteAnswer, example?: unknown): AnswerObject {
  const content = {
    ...(response
      ? { 'application/json': { schema: schemaReference(response), ...(example === undefined ? {} : { example }) } }
      : {}),
    ...(events ? { 'text/event-stream': { schema: { $ref: `#/components/schemas/${events}` } } } : {}),
    ...Object.fromEntries(media.map(type => [type, { schema: fileSchema(type) }])),
  }
  return { description: description ?? '', ...(Object.keys(content).length > 0 ? { content } : {}) }
}

function fileSchema(type: string): object {
  if (type === 'application/json') return { type: 'object', description: 'The document.' }
  return type.startsWith('text/') || type.endsWith('yaml')
    ? { type: 'string', description: 'The text.' }
    : { type: 'string', format: 'binary', description: 'The bytes of the file.' }
}

/** Returns the error answers by status. Those that most routes share are references. */
function errorAnswers(route: Route): Record<string, AnswerObject> {
  const byStatus = new Map<number, FailureCode[]>()
  for (const code of Object.keys(errorCodes) as FailureCode[])
    if (errorCodesOf(route).has(code)) {
      const status = errorStatus(code, route)
      byStatus.set(status, [...(byStatus.get(status) ?? []), code])
    }
  const schema = errorSchemaOf(route)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const shared = sharedName(status, codes, schema)
      return [status, shared ? { $ref: `#/components/responses/${shared}` } : errorAnswer(codes, schema, status)]
    }),
  )
}

function errorAnswer(codes: readonly FailureCode[], schema: string, status: number): AnswerObject {
  return {
    description: codes.map(code => `\`${code}\`: ${errorCodes[code]}`).join('\n\n'),
    ...(status === 429 || status === 503 || status === 529
      ? { headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } }
      : {}),
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  }
}

const sharedStatuses: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  421: 'MisdirectedRequest',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
}
const schemas = {
  ErrorResponse: '',
  SlugErrorResponse: 'Slug',
  FalErrorResponse: 'Fal',
  AnthropicErrorResponse: 'Anthropic',
} as const

function sharedName(status: number, codes: readonly FailureCode[], schema: string): string | undefined {
  const name = sharedStatuses[status]
  const common = commonCodes(status)
  if (!name || codes.length !== common.length || !codes.every(code => common.includes(code))) return undefined
  return `${schemas[schema as keyof typeof schemas]}${name}`
}

/** Returns the answers that routes share, by their names. */
export function sharedAnswers(): Record<string, object> {
  return Object.fromEntries(
    Object.entries(schemas).flatMap(([schema, prefix]) =>
      Object.entries(sharedStatuses).map(([status, name]) => [
        `${prefix}${name}`,
        errorAnswer(commonCodes(Number(status)), schema, Number(status)),
      ]),
    ),
  )
}

/** Returns a reference to a schema with a name. */
function schemaReference(schema: z.ZodType): { $ref: string } {
  const id = z.globalRegistry.get(schema)?.id
  if (!id) throw new Error('A body or response schema needs .meta({ id })')
  return { $ref: `#/components/schemas/${id}` }
}
