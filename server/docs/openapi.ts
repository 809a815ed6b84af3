import { z } from 'zod'
import { regions } from '../../core/schemas/region.ts'
import type { Route } from '../http/request/route.ts'
import { jsonSchemaOptions } from '../views/task-schemas.ts'
import { errorSchemas } from './errors.ts'
import { registerEventSchemas } from './event-schemas.ts'
import { type AnswerExamples, operation, sharedAnswers, templateOf } from './operation.ts'
import { tags } from './tags.ts'

const introduction = [
  'Inference on your own machine. `/std/v1` is an OpenAI-compatible API, `/anthropic` an Anthropic-compatible one, `/slug` and `/fal` serve images and videos, and `/api` has jobs, workflows, tokens and the state of the machine.',
  'Every request but those marked as public needs a token: `Authorization: Bearer sk-infer-…`. `x-scope` names the scope that the token needs.',
  'Errors have one form on all paths but those under `/anthropic`. Each error answer below lists its codes, and the field `error.code` lists all codes there are. Times are Unix seconds, sizes are bytes, costs are in the currency unit of the configured prices.',
  'Unknown fields and query parameters under `/api` and `/slug` are refused with 400 `unknown_parameter`, also in the inputs of jobs. The message names the nearest known field. Unknown fields under `/std/v1`, `/anthropic` and `/fal` are ignored, as official clients expect.',
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
  const follow = (part: unknown): void => {
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
