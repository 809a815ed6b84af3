import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { templateOf } from '../../server/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { toneModel } from './std/_speech.ts'

const routes = routeTable()

interface Operation {
  operationId: string
  tags: string[]
  summary: string
  'x-scope': string
  security?: unknown[]
  parameters: { name: string; in: string; required: boolean; schema: object }[]
  requestBody?: { required: boolean; content: { 'application/json': { schema: { $ref: string }; example?: object } } }
  responses: Record<string, { description: string; content?: { 'application/json': { schema: { $ref: string } } } }>
}
interface Description {
  openapi: string
  info: { title: string; version?: string }
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: Record<string, unknown> }
  security: Record<string, unknown>[]
}

const golden = join(import.meta.dirname, '..', 'golden', 'openapi.json')
let app: TestApp
let api: Description
const operations = () =>
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

beforeAll(async () => {
  // The models that every installation has until it configures its own: the examples are of those.
  app = await startApp({
    models: [
      ...['fake', 'infer/tiny-chat', 'infer/tiny-embed', 'infer/tiny-rerank'].map(id => fakeModel(id)),
      toneModel({ id: 'infer/tiny-speech' }),
      toneModel({ id: 'infer/tiny-transcription', tasks: ['std/audio-transcription'] }),
      fakeModel('whisper', [], { tasks: ['std/audio-translation'] }),
      fakeModel('pictures', [], { tasks: ['slug/text-to-image'] }),
      fakeModel('infer/demo', [], { tasks: ['slug/text-to-image', 'slug/image-to-image'] }),
    ],
  })
  const response = await app.fetch('/openapi.json', { token: null })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
  api = (await response.json()) as Description
})
afterAll(() => app[Symbol.asyncDispose]())

test('the public surface is the one on file: a change of it is seen and meant', () => {
  expect(api.info.version).toMatch(/^\d+\.\d+\.\d+/)
  const { version: _, ...info } = api.info
  const text = `${JSON.stringify({ ...api, info }, null, 2)}\n`
  if (process.env.UPDATE_GOLDEN) writeFileSync(golden, text)
  expect(text, 'UPDATE_GOLDEN=1 npx vitest run test/server/openapi.test.ts').toBe(readFileSync(golden, 'utf8'))
})

test('every route is in it, under its own path and with its scope, and nothing else', () => {
  const written = operations().map(({ path, method, operation }) => `${method} ${path} ${operation['x-scope']}`)
  const table = routes
    .filter(({ path }) => !path.startsWith('/docs'))
    .map(({ method, path, scope }) => `${method.toLowerCase()} ${templateOf(path)} ${scope}`)
  expect(written.toSorted((a, b) => a.localeCompare(b))).toEqual(table.toSorted((a, b) => a.localeCompare(b)))
})

describe('it is OpenAPI 3.1', () => {
  test('with what must be there', () => {
    expect(api.openapi).toBe('3.1.0')
    expect(api.info.title).toBe('infer')
    for (const security of api.security)
      for (const name of Object.keys(security)) expect(Object.keys(api.components.securitySchemes)).toContain(name)
  })

  test('every operation has a name of its own, a known tag, a summary and answers', () => {
    const ids = operations().map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const tags = api.tags.map(({ name }) => name)
    for (const { path, operation } of operations()) {
      expect(operation.operationId, path).toMatch(/^[a-zA-Z][a-zA-Z0-9]+$/)
      expect(operation.summary.length).toBeGreaterThan(5)
      for (const tag of operation.tags) expect(tags).toContain(tag)
      expect(Object.keys(operation.responses).length).toBeGreaterThan(0)
      for (const [status, response] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^(2\d\d|default)$/)
        expect(response.description).toBeTruthy()
      }
      expect(operation.security === undefined).toBe(operation['x-scope'] !== 'public')
    }
    const used = new Set(operations().flatMap(({ operation }) => operation.tags))
    expect(tags.filter(tag => !used.has(tag))).toEqual([])
  })

  test('the parameters of every path are declared, once and as required', () => {
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
      const declared = operation.parameters.filter(parameter => parameter.in === 'path')
      expect(
        declared.map(({ name }) => name).toSorted((a, b) => a.localeCompare(b)),
        path,
      ).toEqual(inPath.toSorted((a, b) => a.localeCompare(b)))
      expect(declared.every(({ required }) => required)).toBe(true)
      const keys = operation.parameters.map(parameter => `${parameter.in} ${parameter.name}`)
      expect(new Set(keys).size).toBe(keys.length)
      for (const parameter of operation.parameters) expect(['path', 'query']).toContain(parameter.in)
    }
  })

  test('every reference in it leads somewhere in it', () => {
    const refs = [...JSON.stringify(api).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!)
    expect(refs.length).toBeGreaterThan(20)
    const lost = refs.filter(ref => {
      const parts = ref.split('/')
      if (parts.shift() !== '#') return true
      return parts.reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], api) === undefined
    })
    expect(lost).toEqual([])
  })

  test('every schema in it is used', () => {
    const used = new Set([...JSON.stringify(api).matchAll(/#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!))
    expect(Object.keys(api.components.schemas).filter(name => !used.has(name))).toEqual([])
    expect(used.has('Config') || used.has('Model')).toBe(false)
  })

  test('every schema in it compiles, those of parameters too', () => {
    const ajv = compiler()
    const names = Object.keys(api.components.schemas)
    expect(names.length).toBeGreaterThan(15)
    for (const name of names) expect(() => validatorOf(ajv, name), name).not.toThrow()
    for (const { path, operation } of operations())
      for (const { name, schema } of operation.parameters)
        expect(
          () => ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object),
          `${path} ${name}`,
        ).not.toThrow()
  })
})

function compiler(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'api', components: api.components })
  return ajv
}
const twoNames = ['/slug/requests/batch']
const mayBeEmpty = /\/(rotate|duplicate|execute|retry)$/
/** A workflow, or an execution that has ended. */
async function ofWorkflow(path: string): Promise<string> {
  const exampleOf = (of: string) => api.paths[of]!.post!.requestBody!.content['application/json'].example
  if (!path.startsWith('/api/workflow-executions/')) {
    const made = await app.fetch('/api/workflows', { body: { ...exampleOf('/api/workflows/run'), name: 'x' } })
    return ((await made.json()) as { workflow: { id: string } }).workflow.id
  }
  const begun = await app.fetch('/api/workflows/run', { body: exampleOf('/api/workflows/run') })
  const { execution } = (await begun.json()) as { execution: { id: string } }
  await (await app.fetch(`/api/workflow-executions/${execution.id}?wait=60`)).body?.cancel()
  return execution.id
}
/** The slugs in paths are those of a model that makes pictures. */
const withSlug = (path: string) => path.replace(/\{(slug|path)\}/, 'pictures/text-to-image')
const validatorOf = (ajv: Ajv2020, name: string) => ajv.compile({ $ref: `api#/components/schemas/${name}` })

/** The schema of an answer, with every object closed: a member that is not written down is a fault. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (schema === null || typeof schema !== 'object') return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return 'properties' in schema && !('additionalProperties' in schema)
    ? { ...inner, additionalProperties: false }
    : inner
}

describe('what is answered is what is written', () => {
  let jobId: string
  let tokenId: string
  beforeAll(async () => {
    const job = await app.fetch('/api/jobs', {
      body: { task: 'std/score', model_id: 'fake', inputs: { text_1: 'a', text_2: 'b' } },
    })
    jobId = ((await job.json()) as { id: string }).id
    await app.fetch(`/api/jobs/${jobId}?wait=30`)
    const token = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body: { name: 'x' } })
    tokenId = ((await token.json()) as { token: { id: string } }).token.id
  })

  const tokens = '/api/organizations/{organization}/tokens'
  const chat = { model: 'fake', messages: [{ role: 'user', content: 'Hello' }] }
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }]
  const verbose = { response_format: 'verbose_json' }
  const silence =
    'data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAIA+AAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA'
  // In this order: the last ones change what the first ones look at.
  test.each<[string, string, unknown]>([
    ['post', '/std/v1/chat/completions', chat],
    ['post', '/std/v1/chat/completions', { ...chat, tools }],
    ['post', '/std/v1/completions', { model: 'fake', prompt: 'a', logprobs: 1 }],
    ['post', '/std/v1/embeddings', { model: 'fake', input: ['a', 'b'] }],
    ['post', '/std/v1/embeddings', { model: 'fake', input: 'a', encoding_format: 'base64' }],
    ['post', '/std/v1/rerank', { model: 'fake', query: 'a', documents: ['a'], return_documents: true }],
    ['post', '/std/v1/score', { model: 'fake', text_1: 'a', text_2: 'b' }],
    ['post', '/std/v1/audio/transcriptions', { model: 'infer/tiny-transcription', url: silence, ...verbose }],
    ['post', '/std/v1/audio/translations', { model: 'whisper', url: silence, ...verbose }],
    ['post', '/std/v1/images/generations', { model: 'infer/demo', prompt: 'a', size: '64x64' }],
    ['post', '/std/v1/images/generations', { model: 'infer/demo', prompt: 'a', response_format: 'b64_json' }],
    ['get', '/std/v1/models', undefined],
    ['get', '/std/v1/models/{id}', undefined],
    ['get', '/api/model-status', undefined],
    ['get', '/api/models/{id}', undefined],
    ['post', '/api/models/{id}/load', undefined],
    ['post', '/api/models/{id}/unload', undefined],
    ['get', '/api/me', undefined],
    ['post', '/api/jobs', { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } }],
    ['get', '/api/jobs/{id}', undefined],
    ['get', '/api/jobs', undefined],
    ['get', '/api/jobs/{id}/logs', undefined],
    ['post', '/api/jobs/{id}/retry', undefined],
    ['delete', '/api/jobs/{id}', undefined],
    ['post', '/fal/queue/{path}', { prompt: 'a' }],
    ['post', '/fal/rest/storage/upload/initiate', { content_type: 'image/png', file_name: 'a.png' }],
    ['get', '/api/library', undefined],
    ['get', tokens, undefined],
    ['post', tokens, { name: 'x' }],
    ['get', `${tokens}/{id}`, undefined],
    ['patch', `${tokens}/{id}`, { name: 'y' }],
    ['post', `${tokens}/{id}/rotate`, {}],
    ['delete', `${tokens}/{id}`, undefined],
    ['post', `${tokens}/{id}/revoke`, undefined],
  ])('%s %s', async (method, path, body) => {
    const operation = api.paths[path]![method]!
    const status = Object.keys(operation.responses)[0]!
    const id = path.includes('models') ? 'fake' : path.includes('jobs') ? jobId : tokenId
    const response = await app.fetch(withSlug(path).replace('{organization}', app.organizationId).replace('{id}', id), {
      method: method.toUpperCase(),
      body,
    })
    const value: unknown = await response.json()
    expect(String(response.status), JSON.stringify(value)).toBe(status)
    const name = operation.responses[status]!.content!['application/json'].schema.$ref.split('/').at(-1)!
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema({ $id: 'api', components: closed(api.components) as object })
    const validate = validatorOf(ajv, name)
    expect([validate(value), validate.errors]).toEqual([true, null])
  })

  test('the example of every body is answered as it stands', async () => {
    for (const { path, method, operation } of operations()) {
      // What is sent to a signed address is answered where one was given out.
      if (!operation.requestBody || path.startsWith('/files/')) continue
      const { example } = operation.requestBody.content['application/json']
      expect(example, path).toBeDefined()
      // What a slug requires is known when the slug is; and some have two names for what they require.
      expect([path, operation.requestBody.required]).toEqual([
        path,
        !mayBeEmpty.test(path) && method !== 'patch' && path === withSlug(path) && !twoNames.includes(path),
      ])
      // One of its own: it is changed.
      const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body: { name: 'x' } })
      const { token } = (await made.json()) as { token: { id: string } }
      const id = await (path.startsWith('/api/workflow') ? ofWorkflow(path) : token.id)
      const filled = withSlug(path).replace('{organization}', app.organizationId).replace('{id}', id)
      const response = await app.fetch(filled, {
        method: method.toUpperCase(),
        body: example,
      })
      expect([path, String(response.status)]).toEqual([path, Object.keys(operation.responses)[0]])
    }
  })

  test.each([
    ['GET', '/api/jobs/x', 404],
    ['GET', '/nowhere', 404],
    ['PUT', '/api/jobs', 405],
    ['POST', '/api/jobs', 400],
  ])('an error of %s %s', async (method, path, status) => {
    const response = await app.fetch(path, { method, ...(method === 'GET' ? {} : { body: {} }) })
    expect(response.status).toBe(status)
    const validate = validatorOf(compiler(), 'ErrorResponse')
    expect([validate(await response.json()), validate.errors]).toEqual([true, null])
  })

  test('and no operation is left out of this list but those that answer in text', () => {
    const text = operations().filter(({ operation }) => !Object.values(operation.responses)[0]!.content)
    expect(text.map(({ path }) => path).toSorted((a, b) => a.localeCompare(b))).toEqual([
      '/api/events',
      '/api/jobs/{id}/events',
      '/api/workflow-executions/{id}/events',
      '/files/{id}/{name}',
      '/files/{id}/{name}',
      '/files/{id}/{name}/{part}',
      '/infer.schema.json',
      '/livez',
      '/metrics',
      '/openapi.json',
      '/readyz',
      '/slug/requests/{id}/status/stream',
      '/std/v1/audio/speech',
    ])
  })
})
