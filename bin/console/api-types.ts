/** The parts of an OpenAPI description that become types. */
export interface ApiDescription {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema>; responses: Record<string, Answer> }
}

interface Operation {
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { content: Content; required?: boolean }
  responses: Record<string, Answer | { $ref: string }>
}
interface Parameter {
  name: string
  in: 'query' | 'path' | 'header' | 'cookie'
  required?: boolean
  schema: Schema
}
type Content = Record<string, { schema?: Schema }>
interface Answer {
  content?: Content
}
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
  description?: string
}

const places = ['query', 'path', 'header', 'cookie'] as const

/**
 * Returns the TypeScript of an API description, in the form that `openapi-fetch` reads: `paths` and `components`.
 * The console is checked against it, so it cannot use a route or a field that the server does not have.
 */
export function apiTypes({ paths, components }: ApiDescription): string {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `${comment(schema)}    ${JSON.stringify(name)}: ${typeOf(schema)}`,
  )
  return [
    '// Generated from the API description by: npm run typecheck, npm run build',
    'export interface paths {',
    ...Object.entries(paths).map(
      ([path, operations]) =>
        `  ${JSON.stringify(path)}: {\n${Object.entries(operations)
          .map(([method, operation]) => `    ${method}: ${operationType(operation, components.responses)}`)
          .join('\n')}\n  }`,
    ),
    '}',
    'export interface components {',
    '  schemas: {',
    ...schemas,
    '  }',
    '}',
    '',
  ].join('\n')
}

function operationType({ parameters = [], requestBody, responses }: Operation, shared: Record<string, Answer>): string {
  const own = parameters.filter((parameter): parameter is Parameter => 'name' in parameter)
  const groups = places.map(place => {
    const here = own.filter(parameter => parameter.in === place)
    const optional = here.every(({ required }) => !required) ? '?' : ''
    const fields = here.map(({ name, required, schema }) => `${field(name, required)}: ${typeOf(schema)}`)
    return `${place}${optional}: ${here.length > 0 ? `{ ${fields.join('; ')} }` : 'never'}`
  })
  const body = requestBody
    ? `requestBody${requestBody.required ? '' : '?'}: ${contentType(requestBody.content)}`
    : 'requestBody?: never'
  const answers = Object.entries(responses).map(([status, answer]) => {
    const whole = '$ref' in answer ? shared[nameIn(answer.$ref)]! : answer
    return `${status}: { headers: Record<string, unknown>; ${contentOf(whole.content)} }`
  })
  return `{ parameters: { ${groups.join('; ')} }; ${body}; responses: { ${answers.join('; ')} } }`
}

const contentOf = (content: Content | undefined): string =>
  content && Object.keys(content).length > 0 ? `content: ${mediaTypes(content)}` : 'content?: never'
const contentType = (content: Content): string => `{ content: ${mediaTypes(content)} }`
const mediaTypes = (content: Content): string =>
  `{ ${Object.entries(content)
    .map(([type, { schema }]) => `${JSON.stringify(type)}: ${schema ? typeOf(schema) : 'unknown'}`)
    .join('; ')} }`

const nameIn = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1)
const field = (name: string, required: boolean | undefined): string => `${JSON.stringify(name)}${required ? '' : '?'}`
const comment = ({ description }: Schema): string =>
  description ? `    /** ${description.replaceAll('*/', '*\\/').replaceAll('\n', ' ')} */\n` : ''
const union = (types: readonly string[], by: string): string => (types.length === 1 ? types[0]! : `(${types.join(by)})`)

function typeOf(schema: Schema): string {
  if (schema.$ref) return `components['schemas'][${JSON.stringify(nameIn(schema.$ref))}]`
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum)
    return union(
      schema.enum.map(value => JSON.stringify(value)),
      ' | ',
    )
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return union([...new Set(choices.map(typeOf))], ' | ')
  if (schema.allOf) return union(schema.allOf.map(typeOf), ' & ')
  const types = [schema.type ?? []].flat()
  return types.length === 0
    ? 'unknown'
    : union(
        types.map(type => plainType(type, schema)),
        ' | ',
      )
}

function plainType(type: string, schema: Schema): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type
    case 'integer':
    case 'number':
      return 'number'
    case 'array':
      return `${schema.items ? union([typeOf(schema.items)], '') : 'unknown'}[]`
    default:
      return objectType(schema)
  }
}

function objectType({ properties, required = [], additionalProperties }: Schema): string {
  const rest = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'
  if (!properties || Object.keys(properties).length === 0) return `Record<string, ${rest}>`
  const fields = Object.entries(properties).map(
    ([name, schema]) => `${field(name, required.includes(name))}: ${typeOf(schema)}`,
  )
  return `{ ${fields.join('; ')} }`
}
