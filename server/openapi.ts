import { z } from 'zod'
import type { Route } from './route.ts'

/** The bounds of JavaScript's whole numbers say nothing about the API. */
const emitted = {
  io: 'input',
  unrepresentable: 'any',
  override({ jsonSchema }: { jsonSchema: { minimum?: number; maximum?: number } }) {
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  },
} as const

const at = (id: string) => `#/components/schemas/${id}`

const ErrorResponse = z
  .object({
    error: z.looseObject({
      code: z.string(),
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      request_id: z.string(),
      retry_after: z
        .int()
        .optional()
        .describe('Seconds after which to try again, as in `Retry-After`. Absent where trying again does not help.'),
      failed_starts: z
        .int()
        .optional()
        .describe('How many times the engine of the model failed in a row, where it could not be started.'),
    }),
  })
  .meta({ id: 'ErrorResponse' })

/** The API as OpenAPI 3.1, from the same schemas that check the requests. Pages of the reference itself are left out. */
export function openapi(routes: readonly Route[], version: string) {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes.filter(({ path }) => path !== '/' && !path.startsWith('/docs')))
    (paths[templateOf(route.path)] ??= {})[route.method.toLowerCase()] = operation(route)
  return {
    openapi: '3.1.0',
    info: {
      title: 'infer',
      version,
      description: [
        'Inference on your own machine: an OpenAI-style API under `/std/v1` and the platform around it under `/api`.',
        'Unknown fields under `/api` and `/slug`, also in the inputs of jobs, and unknown query parameters are refused with 400 `unknown_parameter`. The message names the nearest known field. Extra fields of bodies under `/std/v1` and `/fal` are ignored, as official clients expect.',
        'Web pages of other origins may use the API where `cors.origins` in `infer.yaml` lists them: preflights need no token, and all response headers can be read. Signed addresses of files are open to every page.',
      ].join('\n\n'),
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map(name => ({ name })),
    paths,
    components: {
      schemas: reachable(paths, components()),
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'An API token: `sk-infer-…`' } },
    },
    security: [{ token: [] }],
  }
}

function operation(route: Route) {
  const success = String(route.status ?? 200)
  return {
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[/:*{}.-]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description ? { description: route.description } : {}),
    'x-scope': route.scope,
    ...(route.scope === 'public' ? { security: [] } : {}),
    parameters: [...fields(route.params, 'path'), ...fields(route.query, 'query')],
    ...(route.body || route.form ? { requestBody: requestBody(route) } : {}),
    responses: {
      [success]: {
        description: 'Success',
        ...(route.response ? { content: { 'application/json': { schema: ref(route.response) } } } : {}),
      },
      default: { description: 'Failure', content: { 'application/json': { schema: ref(ErrorResponse) } } },
    },
  }
}

function requestBody({ body, form, example }: Route) {
  const json = body as z.ZodType | undefined
  return {
    required: !(json ?? form!).safeParse({}).success,
    content: {
      ...(json
        ? { 'application/json': { schema: ref(json), ...(example ? { example: example as unknown } : {}) } }
        : {}),
      ...(form ? { 'multipart/form-data': { schema: ref(form) } } : {}),
    },
  }
}

/** `/models/**:id` and `/jobs/:id` in OpenAPI's words. */
export const templateOf = (path: string): string => path.replace(/(?:\*\*)?:(\w+)/g, '{$1}')

/** Emits the whole registry at once: emitting a part makes zod write references that only zod can follow. */
function components() {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { ...emitted, uri: at })
  return Object.fromEntries(
    Object.entries(schemas)
      .filter(([id]) => id !== '__shared')
      // The registry has them in the order in which modules were loaded.
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]),
  )
}

/** Without what only the configuration file is made of. */
function reachable<S>(from: unknown, all: Record<string, S>): Record<string, S> {
  const found = new Set<string>()
  const follow = (part: unknown): void => {
    for (const [, name] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      if (!found.has(name!)) {
        found.add(name!)
        follow(all[name!])
      }
  }
  follow(from)
  return Object.fromEntries(Object.entries(all).filter(([name]) => found.has(name)))
}

function ref(schema: z.ZodType) {
  const id = z.globalRegistry.get(schema)?.id
  if (!id) throw new Error('A body or response schema needs .meta({ id })')
  return { $ref: at(id) }
}

/** Shapes with a name stand once, under components: zod puts them under `$defs` of every schema it is asked for. */
function fields(schema: z.ZodType | undefined, where: 'path' | 'query') {
  if (!schema) return []
  const text = JSON.stringify(z.toJSONSchema(schema, emitted))
  const { properties = {}, required = [] } = JSON.parse(text.replaceAll('#/$defs/', at(''))) as {
    properties?: Record<string, object>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    ...('type' in property && property.type === 'object' ? { style: 'deepObject', explode: true } : {}),
    schema: property,
  }))
}
