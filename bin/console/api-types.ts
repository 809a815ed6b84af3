/** The parts of an OpenAPI description that become types. */
interface ApiDescription {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

interface Operation {
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { content: Content; required?: boolean }
  responses: Record<string, { content?: Content }>
}
interface Parameter {
  name: string
  in: (typeof places)[number]
  required?: boolean
  schema: Schema
}
type Content = Record<string, { schema?: Schema }>
interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
}

const places = ['query', 'path', 'header', 'cookie'] as const

/**
 * Returns the TypeScript of an API description, in the form that `openapi-fetch` reads: `paths` and `components`. Failures
 * are left out, because both clients throw them. The clients are checked against it, so they cannot use a route or a
 * field that the server does not have.
 */
export const apiTypes = ({ paths, components }: ApiDescription): string =>
  `// Generated from the API description by: npm run typecheck, npm run build
export interface paths ${members(paths, operations => members(operations, operationType))}
export interface components { schemas: ${members(components.schemas, typeOf)} }
`

/** An object type; members that are not `required` may be absent. */
function members<T>(all: Readonly<Record<string, T>>, typeOf: (one: T) => string, required = Object.keys(all)): string {
  const typed = Object.entries(all).map(([name, one]) => {
    // openapi-fetch looks for statuses as numbers.
    const key = /^\d+$/.test(name) ? name : JSON.stringify(name)
    return `${key}${required.includes(name) ? '' : '?'}: ${typeOf(one)}`
  })
  return `{\n${typed.join('\n')}\n}`
}

function operationType({ parameters = [], requestBody, responses }: Operation): string {
  const own = parameters.filter(parameter => 'name' in parameter)
  const groups = places.map(place => {
    const here = own.filter(parameter => parameter.in === place)
    const schemas = Object.fromEntries(here.map(({ name, schema }) => [name, schema]))
    const required = here.flatMap(({ name, required }) => (required ? name : []))
    return `${place}${required.length > 0 ? '' : '?'}: ${here.length > 0 ? members(schemas, typeOf, required) : 'never'}`
  })
  const body = requestBody
    ? `requestBody${requestBody.required ? '' : '?'}: { ${contentType(requestBody.content)} }`
    : 'requestBody?: never'
  const successes = Object.fromEntries(Object.entries(responses).filter(([status]) => status < '300'))
  const answers = members(successes, ({ content }) => `{ headers: Record<string, unknown>; ${contentType(content)} }`)
  return `{ parameters: { ${groups.join('; ')} }; ${body}; responses: ${answers} }`
}

const contentType = (content: Content = {}): string =>
  Object.keys(content).length === 0
    ? 'content?: never'
    : `content: ${members(content, ({ schema = {} }) => typeOf(schema))}`

/** A type of its own where several are joined, so that it can be followed by `[]`. */
const joined = (types: readonly string[], by: '|' | '&'): string => `(${[...new Set(types)].join(` ${by} `)})`

function typeOf(schema: Schema): string {
  const { $ref, const: only, enum: values = only === undefined ? undefined : [only], allOf, type = [] } = schema
  const choices = schema.anyOf ?? schema.oneOf
  if ($ref) return `components['schemas'][${JSON.stringify($ref.slice($ref.lastIndexOf('/') + 1))}]`
  if (values)
    return joined(
      values.map(value => JSON.stringify(value)),
      '|',
    )
  if (choices) return joined(choices.map(typeOf), '|')
  if (allOf) return joined(allOf.map(typeOf), '&')
  const types = [type].flat()
  return types.length === 0
    ? 'unknown'
    : joined(
        types.map(one => plainType(one, schema)),
        '|',
      )
}

function plainType(type: string, { items, properties = {}, required = [], additionalProperties }: Schema): string {
  if (type === 'integer') return 'number'
  if (type === 'array') return `${items ? typeOf(items) : 'unknown'}[]`
  if (type !== 'object') return type
  const rest = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'
  return Object.keys(properties).length === 0 ? `Record<string, ${rest}>` : members(properties, typeOf, required)
}
