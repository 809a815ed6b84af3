import { z } from 'zod'
import type { FailureCode } from '../../core/failure.ts'
import { regions } from '../../core/schemas/region.ts'
import type { RouteAnswer } from '../http/request/endpoint.ts'
import type { Route } from '../http/request/route.ts'
import { jsonSchemaOptions } from '../views/task-schemas.ts'
import { commonCodes, errorCodes, errorCodesOf, errorSchemaOf, errorSchemas, errorStatus } from './errors.ts'
import { registerEventSchemas } from './event-schemas.ts'

/** Recorded answers to the example requests, by operation id. */
export type AnswerExamples = Readonly<Record<string, unknown>>

/** Converts h3 paths such as `/models/**:id` and `/jobs/:id` to OpenAPI path templates. */
export const templateOf = (path: string): string => path.replace(/(?:\*\*)?:(\w+)/g, '{$1}')

/** Returns the id of the operation of a route, such as `getApiJobsId`. */
const operationIdOf = ({ method, path }: Route) =>
  `${method.toLowerCase()}${path.replace(/[/:*{}._-]+([^\W_]?)/g, (_, letter: string) => letter.toUpperCase())}`

/** Returns the OpenAPI operation of a route. */
function operation(route: Route, examples: AnswerExamples): Record<string, unknown> {
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
      ...parametersOf(params, 'path'),
      ...parametersOf(query, 'query'),
      ...(startsWork ? [{ $ref: '#/components/parameters/Region' }] : []),
      ...(isIdempotent ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ],
    ...(route.body || route.form || route.rawBody ? { requestBody: requestBody(route) } : {}),
    responses: joined(documentedAnswers(route, examples[operationId]), errorAnswers(route)),
  }
}

function parametersOf(schema: z.ZodType | undefined, where: 'path' | 'query') {
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
function joined(documented: Record<string, AnswerObject>, errors: Record<string, AnswerObject>) {
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

function textOf({ response, events, media }: RouteAnswer) {
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
const errorPrefixes = {
  ErrorResponse: '',
  SlugErrorResponse: 'Slug',
  FalErrorResponse: 'Fal',
  AnthropicErrorResponse: 'Anthropic',
} as const

function sharedName(status: number, codes: readonly FailureCode[], schema: string) {
  const name = sharedStatuses[status]
  const common = commonCodes(status)
  if (!name || codes.length !== common.length || !codes.every(code => common.includes(code))) return undefined
  return `${errorPrefixes[schema as keyof typeof errorPrefixes]}${name}`
}

/** Returns the answers that routes share, by their names. */
function sharedAnswers(): Record<string, object> {
  return Object.fromEntries(
    Object.entries(errorPrefixes).flatMap(([schema, prefix]) =>
      Object.entries(sharedStatuses).map(([status, name]) => [
        `${prefix}${name}`,
        errorAnswer(commonCodes(Number(status)), schema, Number(status)),
      ]),
    ),
  )
}

/** Returns a reference to a schema with a name. */
function schemaReference(schema: z.ZodType) {
  const id = z.globalRegistry.get(schema)?.id
  if (!id) throw new Error('A body or response schema needs .meta({ id })')
  return { $ref: `#/components/schemas/${id}` }
}

/** Headings of the reference with their descriptions. */
const tags: Readonly<Record<string, string>> = {
  Text: 'OpenAI-compatible API for text: chat completions, completions, embeddings, rerank and scores.',
  Anthropic: "Anthropic-compatible API: Anthropic's clients work with `/anthropic` of this server as their base URL.",
  Audio: 'OpenAI-compatible API for audio: text to speech, transcription and translation.',
  Models: 'Models, their state, and loading and unloading them.',
  Images: 'OpenAI-compatible API for images.',
  Batches: 'OpenAI-compatible API for batches: files of requests that run in the background after all other work.',
  Jobs: 'Background jobs. A job that was accepted survives crashes and restarts.',
  Events: 'Server-sent events of jobs and executions.',
  Generation: 'Images and videos by the slug of a model: queue, status, result.',
  fal: "fal-compatible API: fal's clients work with this server as their `proxyUrl`.",
  Ollama: 'Ollama-compatible API: programs made for Ollama work with `<this server>/ollama` as their host.',
  Replicate: "Replicate-compatible API: Replicate's clients work with `<this server>/replicate/v1` as their base URL.",
  Workflows: 'Stored workflows: graphs of tasks that use the results of each other.',
  'Workflow executions': 'Runs of workflows.',
  MCP: 'The Model Context Protocol: models and workflows as tools of agents and editors.',
  Conversations:
    'Conversations with models, kept for the user of a token, or for a token without a user, where the organization stores content.',
  Library: 'Videos that jobs of the organization created.',
  'Stored files':
    'OpenAI-compatible API for files: upload, list, download and delete them, and use them in requests by their id.',
  Files: 'Files by signed addresses. The signature is the right to read or to send: no token is needed.',
  'Organizations and tokens': 'API tokens and what they allow.',
  Webhooks: 'Signed messages about events of jobs and executions, sent to URLs of the organization.',
  Console: 'Sessions of the web console. Programs use tokens, and need no session.',
  System: 'Health, metrics, state of the machine, and the description of this API.',
}

const introduction = [
  'Inference on your own machine. `/std/v1` is an OpenAI-compatible API, `/anthropic` an Anthropic-compatible one, `/slug` and `/fal` serve images and videos, and `/api` has jobs, workflows, tokens and the state of the machine.',
  'Every request but those marked as public needs a token: `Authorization: Bearer sk-infer-…`. `x-scope` names the scope that the token needs.',
  'Errors have one form on all paths but those under `/anthropic`. Each error answer below lists its codes, and the field `error.code` lists all codes there are. Times are Unix seconds, sizes are bytes, costs are in the currency unit of the configured prices.',
  'Unknown fields and query parameters under `/api` and `/slug` are refused with 400 `unknown_parameter`, also in the inputs of jobs. The message names the nearest known field. Unknown fields under `/std/v1`, `/anthropic` and `/fal` are ignored, as official clients expect. What only describes, such as a keyword in the schema of a tool, and tools that only the vendor runs are left out: the header `x-infer-ignored` names them.',
  'Web pages of other origins may use the API if `cors.origins` in `infer.yaml` lists them: preflights need no token, and all response headers can be read. Signed addresses of files are open to every page.',
].join('\n\n')

/**
 * Returns the API as OpenAPI 3.1, from the same schemas that check the requests. Pages of the reference itself and the
 * console are left out.
 */
export function openapi(routes: readonly Route[], version: string, examples: AnswerExamples = {}) {
  registerEventSchemas()
  const shown = routes.filter(({ path }) => !/^\/($|docs|console)/.test(path))
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of shown)
    (paths[templateOf(route.path)] ??= {})[route.method.toLowerCase()] = operation(route, examples)
  const used = reachable(paths, {
    schemas: { ...schemas(), ...errorSchemas() },
    responses: sharedAnswers(),
    headers,
    parameters,
  })
  return {
    openapi: '3.1.0',
    info: {
      title: 'infer',
      version,
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    tags: [...new Set(shown.map(({ tag }) => tag))].map(name => ({ name, description: tags[name] })),
    paths,
    components: {
      ...used,
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'An API token: `sk-infer-…`.' } },
    },
    security: [{ token: [] }],
  }
}

const headers = {
  RetryAfter: { description: 'Seconds after which to try again.', schema: { type: 'integer' } },
}
const parameters = {
  Region: {
    name: 'X-Region',
    in: 'header',
    required: false,
    description:
      'Region in which the work runs: its models must be there. `Global` asks for none. `GET /api/model-status` has the region of each model.',
    schema: { type: 'string', enum: regions },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'A text of your choice, 1 to 255 characters. A repeated request with the same key and body is not processed again for 24 hours: it gets the first answer.',
    schema: { type: 'string' },
  },
}

/** Emits the whole registry at once: emitting a part makes zod write references that only zod can follow. */
function schemas(): Record<string, object> {
  const { schemas: all } = z.toJSONSchema(z.globalRegistry, {
    ...jsonSchemaOptions,
    uri: id => `#/components/schemas/${id}`,
  })
  return Object.fromEntries(
    Object.entries(all)
      .filter(([id]) => id !== '__shared')
      .map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]),
  )
}

/** Returns the components that are used, without those of the configuration file, sorted by name. */
function reachable(from: unknown, all: Record<string, Record<string, object>>): Record<string, Record<string, object>> {
  const found = new Set<string>()
  const follow = (part: unknown) => {
    for (const [, kind, name] of JSON.stringify(part).matchAll(/"#\/components\/(\w+)\/(\w+)"/g))
      if (!found.has(`${kind}/${name}`)) {
        found.add(`${kind}/${name}`)
        follow(all[kind!]?.[name!] ?? {})
      }
  }
  follow(from)
  return Object.fromEntries(
    Object.entries(all).map(([kind, those]) => [
      kind,
      Object.fromEntries(
        Object.entries(those)
          .filter(([name]) => found.has(`${kind}/${name}`))
          // Sorted, because the registry's order depends on the order in which modules are loaded.
          .toSorted(([a], [b]) => (a < b ? -1 : 1)),
      ),
    ]),
  )
}
