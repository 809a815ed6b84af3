import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

export interface Schema {
  $ref?: string
  description?: string
  properties?: Record<string, Schema>
  [keyword: string]: unknown
}
export interface Media {
  schema: Schema
  example?: unknown
}
export interface Answer {
  $ref?: string
  description: string
  content?: Record<string, Media>
}
export interface Parameter {
  $ref?: string
  name: string
  in: string
  required: boolean
  description?: string
  schema: Schema
}
export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  'x-scope': string
  security?: unknown[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Record<string, Media> }
  responses: Record<string, Answer>
}
export interface Description {
  openapi: string
  info: { title: string; version?: string; license: object }
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, Answer>
    parameters: Record<string, Parameter>
    securitySchemes: Record<string, unknown>
  }
  security: Record<string, unknown>[]
}

/** Every operation with its path and its method in lower case. */
export const operationsOf = (api: Description) =>
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

/** Follows a reference within the description. */
export function resolved<T extends { $ref?: string }>(api: Description, part: T): T {
  if (part.$ref === undefined) return part
  const found = part.$ref
    .split('/')
    .slice(1)
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], api)
  if (found === undefined) throw new Error(`${part.$ref} leads nowhere`)
  return found as T
}

/** The schema with every object closed: an undocumented member is an error. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (schema === null || typeof schema !== 'object') return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return 'properties' in schema && !('additionalProperties' in schema)
    ? { ...inner, additionalProperties: false }
    : inner
}

/** Compiles schemas of the description. With `close` an undocumented member is an error. */
export function compiler(api: Description, { close = false } = {}): (schema: Schema) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'api', components: close ? (closed(api.components) as object) : api.components })
  const compiled = new Map<string, ValidateFunction>()
  return schema => {
    const text = JSON.stringify(schema).replaceAll('"#/', '"api#/')
    const known = compiled.get(text) ?? ajv.compile(JSON.parse(text) as object)
    compiled.set(text, known)
    return known
  }
}
