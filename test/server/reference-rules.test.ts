import { expect, test } from 'vitest'
import { failures } from '../../core/failure.ts'
import { openapi } from '../../server/docs/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { compiler, type Description, operationsOf, resolved, type Schema } from './_reference.ts'

const routes = routeTable().filter(({ path }) => !/^\/($|docs|console)/.test(path))
const api = openapi(routeTable(), '1.0.0') as unknown as Description
const operations = operationsOf(api)

/** The verbs that summaries begin with. Add one where none of them describes an operation. */
const verbs = new Set(
  (
    'Add Allow Answer Call Cancel Check Compare Complete Create Delete Download Duplicate Edit Estimate Execute Export Get List Load Pause Redeliver Remove Replace ' +
    'Rerank Resolve Resume Retry Revoke Rewrite Rotate Run Score Send Start Stream Submit Suspend Test Transcribe Translate Unload ' +
    'Update Upload Validate'
  ).split(' '),
)

test('every summary is a verb of the list and a noun, and no sentence', () => {
  const wrong = operations
    .map(({ operation }) => operation.summary)
    .filter(
      summary => !verbs.has(summary.split(' ')[0]!) || /[.,;:`]/.test(summary) || !/^\S+( \S+){1,5}$/.test(summary),
    )
  expect(wrong).toEqual([])
})

test('every operation is described in sentences', () => {
  const wrong = operations.filter(({ operation }) => !/^[A-Z`].{20,}\.$/s.test(operation.description ?? ''))
  expect(wrong.map(({ method, path }) => `${method} ${path}`)).toEqual([])
})

/** Every property below a schema, with its path. */
function* propertiesOf(schema: unknown, path: string): Generator<[path: string, property: Schema]> {
  if (Array.isArray(schema)) {
    for (const one of schema) yield* propertiesOf(one, path)
    return
  }
  if (schema === null || typeof schema !== 'object') return
  for (const [key, value] of Object.entries(schema)) {
    if (['example', 'examples', 'default', 'enum', 'const', 'required'].includes(key)) continue
    if (key === 'properties')
      for (const [name, property] of Object.entries(value as Record<string, Schema>)) {
        yield [`${path}.${name}`, property]
        yield* propertiesOf(property, `${path}.${name}`)
      }
    else yield* propertiesOf(value, path)
  }
}

const described = (schema: Schema): boolean => {
  const text = schema.description ?? resolved(api, schema).description
  return text !== undefined && /[.:!]$|\|$/.test(text)
}

test('every field of every schema is described', () => {
  const properties = Object.entries(api.components.schemas).flatMap(([name, schema]) => [...propertiesOf(schema, name)])
  expect(properties.length).toBeGreaterThan(900)
  expect(properties.filter(([, property]) => !described(property)).map(([path]) => path)).toEqual([])
})

test('every schema with a name is described, and the name is one or more plain words', () => {
  const names = Object.entries(api.components.schemas)
  expect(names.filter(([, schema]) => !schema.description).map(([name]) => name)).toEqual([])
  expect(names.map(([name]) => name).filter(name => !/^([A-Z][a-z]+)+$/.test(name))).toEqual([])
})

test('every parameter is described', () => {
  const wrong = operations.flatMap(({ method, path, operation }) =>
    operation.parameters
      .map(parameter => resolved(api, parameter))
      .filter(({ description, schema }) => description === undefined && !described(schema))
      .map(({ name }) => `${method} ${path} ${name}`),
  )
  expect(wrong).toEqual([])
})

test('every tag is described', () => {
  expect(api.tags.filter(({ description }) => !description).map(({ name }) => name)).toEqual([])
})

test('every operation but a public one documents its errors by status, each with its shape', () => {
  for (const { method, path, operation } of operations) {
    const name = `${method} ${path}`
    const statuses = Object.keys(operation.responses).map(Number)
    expect(
      // A WebSocket begins with 101.
      statuses.some(status => status === 101 || (status >= 200 && status < 300)),
      name,
    ).toBe(true)
    expect(
      statuses.some(status => status >= 400 && status < 500),
      name,
    ).toBe(true)
    expect(statuses, name).toEqual(expect.arrayContaining([421, 500, path.startsWith('/anthropic/') ? 529 : 503]))
    if (operation['x-scope'] !== 'public') expect(statuses, name).toEqual(expect.arrayContaining([401, 403, 429]))
    if (operation.requestBody?.content['application/json'])
      expect(statuses, name).toEqual(expect.arrayContaining([path.startsWith('/fal/') ? 422 : 400, 413, 415]))
    const shape = path.startsWith('/fal/')
      ? 'FalError'
      : path.startsWith('/slug/')
        ? 'SlugError'
        : path.startsWith('/anthropic/')
          ? 'AnthropicError'
          : 'Error'
    for (const status of statuses.filter(status => status >= 400 && !others.has(`${name} ${status}`))) {
      const { content } = resolved(api, operation.responses[status]!)
      const { $ref, anyOf } = content!['application/json']!.schema as { $ref?: string; anyOf?: { $ref: string }[] }
      const refs = anyOf?.map(one => one.$ref) ?? [$ref]
      expect(refs, `${name} ${status}`).toContain(`#/components/schemas/${shape}Response`)
    }
  }
})

/** Statuses that clients do not treat as errors. */
const others = new Set([
  'get /files/{id}/{name} 416',
  'get /std/v1/files/{id}/content 416',
  'put /fal/queue/{path} 400',
])

test('every error code is documented, and no unknown code is', () => {
  const codes = api.components.schemas.Error!.properties!.code!.enum
  expect(codes).toEqual(Object.keys(failures))
})

test('every answer has a shape, or is documented as having no body', () => {
  const wrong = operations.flatMap(({ method, path, operation }) =>
    Object.entries(operation.responses)
      .filter(([, answer]) => {
        const { content, description } = resolved(api, answer)
        return content === undefined && !/no body|If-None-Match|Content-Range/.test(description)
      })
      .map(([status]) => `${method} ${path} ${status}`),
  )
  expect(wrong).toEqual([])
})

test('every JSON body has an example that its schema accepts', () => {
  const compile = compiler(api)
  for (const { path, operation } of operations) {
    const json = operation.requestBody?.content['application/json']
    if (!json) continue
    const validate = compile(json.schema)
    expect([path, validate(json.example), validate.errors]).toEqual([path, true, null])
  }
})

test('no two paths match the same request', () => {
  const form = (path: string) => path.replace(/\{\w+\}/g, '{}')
  const paths = Object.keys(api.paths)
  expect(new Set(paths.map(form)).size).toBe(paths.length)
  expect(paths.filter(path => path !== '/' && (path.endsWith('/') || path.includes('?')))).toEqual([])
})

test('every required field exists', () => {
  const wrong: string[] = []
  const walk = (schema: unknown, path: string): void => {
    if (schema === null || typeof schema !== 'object') return
    const { required, properties } = schema as { required?: unknown; properties?: object }
    if (Array.isArray(required) && properties)
      for (const name of required as string[]) if (!(name in properties)) wrong.push(`${path}.${name}`)
    for (const [key, value] of Object.entries(schema)) if (key !== 'example') walk(value, `${path}/${key}`)
  }
  walk(api.components.schemas, '')
  expect(wrong).toEqual([])
})

test('routes missing in the reference are its pages', () => {
  expect(operations.length).toBe(routes.length)
})
