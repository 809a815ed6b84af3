import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openapi, templateOf } from '../../server/docs/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { apiText } from '../golden/api-text.ts'
import { compiler, type Description, operationsOf, resolved, type Schema } from './_reference.ts'
import { toneModel } from './surfaces/openai/_speech.ts'

const routes = routeTable()

const golden = join(import.meta.dirname, '..', 'golden', 'api.txt')
let app: TestApp
let api: Description
const operations = () => operationsOf(api)

beforeAll(async () => {
  // The models of every installation before it configures its own: the examples name those.
  app = await startApp({
    models: [
      ...['fake', 'infer/tiny-chat', 'infer/tiny-embed', 'infer/tiny-rerank'].map(id => fakeModel(id)),
      fakeModel('judges', [], { tasks: ['std/chat-completion', 'std/moderation'] }),
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

test('the public API equals the golden file, so that every change is intended', () => {
  expect(api.info.version).toMatch(/^\d+\.\d+\.\d+/)
  // The examples of answers have a file of their own.
  const bare = openapi(routeTable(), '') as unknown as Description
  const text = apiText(bare)
  expect(Object.keys(api.components.schemas)).toEqual(Object.keys(bare.components.schemas))
  if (process.env.UPDATE_GOLDEN) writeFileSync(golden, text)
  expect(text, 'UPDATE_GOLDEN=1 npx vitest run test/server/openapi.test.ts').toBe(readFileSync(golden, 'utf8'))
})

test('every route is described under its path with its scope, and nothing else is', () => {
  const written = operations().map(({ path, method, operation }) => `${method} ${path} ${operation['x-scope']}`)
  const table = routes
    .filter(({ path }) => !/^\/($|docs|console)/.test(path))
    .map(({ method, path, scope }) => `${method.toLowerCase()} ${templateOf(path)} ${scope}`)
  expect(written.toSorted((a, b) => a.localeCompare(b))).toEqual(table.toSorted((a, b) => a.localeCompare(b)))
})

describe('it is OpenAPI 3.1', () => {
  test('it has the required members', () => {
    expect(api.openapi).toBe('3.1.0')
    expect(api.info.title).toBe('infer')
    for (const security of api.security)
      for (const name of Object.keys(security)) expect(Object.keys(api.components.securitySchemes)).toContain(name)
  })

  test('every operation has a unique name, a known tag and answers', () => {
    const ids = operations().map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const tags = api.tags.map(({ name }) => name)
    for (const { path, operation } of operations()) {
      expect(operation.operationId, path).toMatch(/^[a-zA-Z][a-zA-Z0-9]+$/)
      for (const tag of operation.tags) expect(tags).toContain(tag)
      expect(Object.keys(operation.responses).length).toBeGreaterThan(0)
      for (const [status, response] of Object.entries(operation.responses)) {
        expect(status).toMatch(/^(101|[2345]\d\d)$/)
        expect(resolved(api, response).description).toBeTruthy()
      }
      expect(operation.security === undefined, path).toBe(!['public', 'loopback'].includes(operation['x-scope']))
    }
    const used = new Set(operations().flatMap(({ operation }) => operation.tags))
    expect(tags.filter(tag => !used.has(tag))).toEqual([])
  })

  test('the parameters of every path are declared, once and as required', () => {
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
      const parameters = operation.parameters.map(parameter => resolved(api, parameter))
      const declared = parameters.filter(parameter => parameter.in === 'path')
      expect(
        declared.map(({ name }) => name).toSorted((a, b) => a.localeCompare(b)),
        path,
      ).toEqual(inPath.toSorted((a, b) => a.localeCompare(b)))
      expect(declared.every(({ required }) => required)).toBe(true)
      const keys = parameters.map(parameter => `${parameter.in} ${parameter.name}`)
      expect(new Set(keys).size).toBe(keys.length)
      for (const parameter of parameters) expect(['path', 'query', 'header']).toContain(parameter.in)
    }
  })

  test('every reference in it resolves', () => {
    // An example may be a schema itself, whose references are its own.
    const text = JSON.stringify(api, (name, value: unknown) => (/^examples?$/.test(name) ? undefined : value))
    const refs = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref!)
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
    const compile = compiler(api)
    const names = Object.keys(api.components.schemas)
    expect(names.length).toBeGreaterThan(15)
    for (const name of names) expect(() => compile(named(name)), name).not.toThrow()
    for (const { path, operation } of operations())
      for (const parameter of operation.parameters) {
        const { name, schema } = resolved(api, parameter)
        expect(() => compile(schema), `${path} ${name}`).not.toThrow()
      }
  })
})

const named = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
/** The slugs in paths are those of a model that makes images. */
const withSlug = (path: string) => path.replace(/\{(slug|path)\}/, 'pictures/text-to-image')

describe('answers match the description', () => {
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
  // In this order: the last ones change what the first ones read.
  test.each<[string, string, unknown]>([
    ['post', '/std/v1/chat/completions', chat],
    ['post', '/std/v1/chat/completions', { ...chat, tools }],
    ['post', '/std/v1/completions', { model: 'fake', prompt: 'a', logprobs: 1 }],
    ['post', '/std/v1/embeddings', { model: 'fake', input: ['a', 'b'] }],
    ['post', '/std/v1/embeddings', { model: 'fake', input: 'a', encoding_format: 'base64' }],
    ['post', '/std/v1/rerank', { model: 'fake', query: 'a', documents: ['a'], return_documents: true }],
    ['post', '/std/v1/responses', { model: 'fake', input: 'Hello' }],
    ['post', '/std/v1/score', { model: 'fake', text_1: 'a', text_2: 'b' }],
    ['post', '/std/v1/moderations', { input: ['a', 'b'] }],
    ['post', '/std/v2/chat', chat],
    ['post', '/std/v1/embed', { model: 'fake', texts: ['a'] }],
    ['post', '/std/v2/embed', { model: 'fake', texts: ['a'], embedding_types: ['float', 'base64'] }],
    ['post', '/anthropic/v1/messages', { ...chat, max_tokens: 9 }],
    ['get', '/anthropic/v1/models', undefined],
    ['get', '/anthropic/v1/models/{id}', undefined],
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
    const id = path.includes('models') ? 'fake' : path.includes('jobs') ? jobId : tokenId
    const response = await app.fetch(withSlug(path).replace('{organization}', app.organizationId).replace('{id}', id), {
      method: method.toUpperCase(),
      body,
    })
    const value: unknown = await response.json()
    const schema = operation.responses[response.status]?.content?.['application/json']?.schema
    expect([response.ok, schema === undefined], JSON.stringify(value)).toEqual([true, false])
    const validate = compiler(api, { close: true })(schema!)
    expect([validate(value), validate.errors]).toEqual([true, null])
  })

  test.each([
    ['GET', '/api/jobs/x', 404],
    ['GET', '/nowhere', 404],
    ['PUT', '/api/jobs', 405],
    ['POST', '/api/jobs', 400],
  ])('an error of %s %s', async (method, path, status) => {
    const response = await app.fetch(path, { method, ...(method === 'GET' ? {} : { body: {} }) })
    expect(response.status).toBe(status)
    const validate = compiler(api)(named('ErrorResponse'))
    expect([validate(await response.json()), validate.errors]).toEqual([true, null])
  })
})
