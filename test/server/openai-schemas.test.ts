import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { toneModel } from './surfaces/openai/_speech.ts'

/** Answers have the shapes of OpenAI's published description, of which the fixture is a part. */
const description = JSON.parse(
  readFileSync(new URL('../fixtures/openai-api.json', import.meta.url), 'utf8'),
  // `nullable` is left from an older version of OpenAPI, and no keyword of JSON Schema.
  (_, value: unknown) => {
    if ((value as { nullable?: unknown } | null)?.nullable !== true) return value
    const { nullable: _nullable, ...schema } = value as { nullable: true }
    return { anyOf: [schema, { type: 'null' }] }
  },
) as {
  components: { schemas: Record<string, { properties?: { type?: { enum?: string[] } }; anyOf?: { $ref: string }[] }> }
}
const { schemas } = description.components
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).addSchema(description, 'openai')
const compiled = new Map<string, ValidateFunction>()
function check(name: string, value: unknown): void {
  if (!schemas[name]) throw new Error(`The fixture has no schema '${name}'.`)
  let validate = compiled.get(name)
  if (!validate) compiled.set(name, (validate = ajv.compile({ $ref: `openai#/components/schemas/${name}` })))
  validate(value)
  expect(validate.errors ?? [], JSON.stringify(value)).toEqual([])
}

/** Returns the schema of one event by its type, so that a mistake is reported for that schema alone. */
const eventSchemaOf = (union: string, type: string): string => {
  const names = schemas[union]!.anyOf!.map(({ $ref }) => $ref.split('/').at(-1)!)
  const name = names.find(one => schemas[one]!.properties?.type?.enum?.includes(type))
  if (!name) throw new Error(`OpenAI has no event '${type}' in ${union}.`)
  return name
}

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      ...['fake', 'infer/tiny-embed'].map(id => fakeModel(id)),
      fakeModel('painter', [], { tasks: ['slug/text-to-image'] }),
      fakeModel('film', [], { tasks: ['slug/text-to-video'] }),
      fakeModel('judge', [], { tasks: ['std/chat-completion', 'std/moderation'] }),
      toneModel({ id: 'whisper', tasks: ['std/audio-transcription'] }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const send = (method: string, path: string, body?: object) =>
  app.fetch(path, {
    method,
    ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
  })

const chat = { model: 'fake', messages: [{ role: 'user', content: 'Hello' }] }
const response = { model: 'fake', input: 'Hello' }
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const calling = { tools: [{ type: 'function', name: 'f', parameters }], tool_choice: 'required' }

/** 16 samples of silence. */
const url = 'data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAIA+AAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA'
const quiet = { model: 'whisper', url }
const verbose = { ...quiet, response_format: 'verbose_json' }

test.each<[method: string, path: string, body: object | undefined, schema: string]>([
  ['POST', '/std/v1/responses', response, 'Response'],
  ['POST', '/std/v1/responses', { ...response, ...calling, metadata: { a: 'b' }, user: 'u' }, 'Response'],
  ['POST', '/std/v1/responses', { ...response, max_output_tokens: 2, reasoning: { effort: 'low' } }, 'Response'],
  ['POST', '/std/v1/responses', { ...response, tools: [{ type: 'web_search' }] }, 'Response'],
  ['POST', '/std/v1/responses', { ...response, conversation: 'conv_1' }, 'ErrorResponse'],
  ['POST', '/std/v1/chat/completions', chat, 'CreateChatCompletionResponse'],
  ['POST', '/std/v1/chat/completions', {}, 'ErrorResponse'],
  ['POST', '/std/v1/completions', { model: 'fake', prompt: 'a' }, 'CreateCompletionResponse'],
  ['POST', '/std/v1/embeddings', { model: 'infer/tiny-embed', input: 'a' }, 'CreateEmbeddingResponse'],
  ['POST', '/std/v1/audio/transcriptions', quiet, 'CreateTranscriptionResponseJson'],
  ['POST', '/std/v1/audio/transcriptions', verbose, 'CreateTranscriptionResponseVerboseJson'],
  ['POST', '/std/v1/images/generations', { model: 'painter', prompt: 'a', size: '1024x1024' }, 'ImagesResponse'],
  ['POST', '/std/v1/moderations', { model: 'judge', input: 'Hello' }, 'CreateModerationResponse'],
  ['GET', '/std/v1/batches/none', undefined, 'ErrorResponse'],
  ['GET', '/std/v1/videos/none', undefined, 'ErrorResponse'],
  ['GET', '/std/v1/responses/none', undefined, 'ErrorResponse'],
  ['DELETE', '/std/v1/files/none', undefined, 'ErrorResponse'],
  ['GET', '/std/v1/models', undefined, 'ListModelsResponse'],
  ['GET', '/std/v1/models/fake', undefined, 'Model'],
  ['GET', '/std/v1/models/none', undefined, 'ErrorResponse'],
  ['POST', '/std/v1/uploads', { filename: 'a', purpose: 'batch', bytes: 1, mime_type: 'text/plain' }, 'Upload'],
])('%s %s %j is %s', async (method, path, body, schema) => {
  const answer = await send(method, path, body)
  expect(answer.status >= 400).toBe(schema === 'ErrorResponse')
  check(schema, await answer.json())
})

const file = (name: string, type: string, bytes: Buffer<ArrayBuffer>) => new File([bytes], name, { type })
const posted = (path: string, fields: Record<string, string | File>) => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.append(name, value)
  return fetch(`${app.url}${path}`, { method: 'POST', body, headers: { authorization: `Bearer ${app.secret}` } })
}

test('files and their deletion', async () => {
  const fields = { purpose: 'batch', file: file('a.jsonl', 'application/jsonl', Buffer.from('{}\n')) }
  const stored = (await (await posted('/std/v1/files', fields)).json()) as { id: string }
  check('OpenAIFile', stored)
  check('OpenAIFile', await (await send('GET', `/std/v1/files/${stored.id}`)).json())
  check('ListFilesResponse', await (await send('GET', '/std/v1/files')).json())
  check('DeleteFileResponse', await (await send('DELETE', `/std/v1/files/${stored.id}`)).json())
})

interface Kept {
  id: string
  status: string
}
const read = async (method: string, path: string, body?: object) =>
  (await (await send(method, path, body)).json()) as Kept
/** OpenAI's API answers null for members that have no value yet; its description calls them optional. */
const withoutNulls = (value: object): unknown =>
  JSON.parse(JSON.stringify(value, (_, member: unknown) => (member === null ? undefined : member)))
/** Checks an object each time it is read, until it has ended. */
const checkToEnd = (schema: string, path: string, shown: (value: object) => unknown = value => value) =>
  expect
    .poll(async () => {
      const one = await read('GET', path)
      check(schema, shown(one))
      return one.status
    })
    .toMatch(/^(completed|failed)$/)

test('batches: new, ended, failed and listed', async () => {
  const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: chat }
  for (const text of [JSON.stringify(line), 'no JSON']) {
    const fields = { purpose: 'batch', file: file('a.jsonl', 'application/jsonl', Buffer.from(text)) }
    const { id: input_file_id } = (await (await posted('/std/v1/files', fields)).json()) as Kept
    const wanted = { input_file_id, endpoint: line.url, completion_window: '24h', metadata: { a: 'b' } }
    const batch = await read('POST', '/std/v1/batches', wanted)
    check('Batch', withoutNulls(batch))
    await checkToEnd('Batch', `/std/v1/batches/${batch.id}`, withoutNulls)
  }
  check('ListBatchesResponse', withoutNulls(await read('GET', '/std/v1/batches?limit=1')))
})

test('videos: new, ended, listed and deleted', async () => {
  const wanted = { model: 'film', prompt: 'A cat', seconds: '1', size: '1280x720' }
  const video = await read('POST', '/std/v1/videos', wanted)
  const path = `/std/v1/videos/${video.id}`
  check('VideoResource', video)
  await checkToEnd('VideoResource', path)
  check('VideoListResource', await read('GET', '/std/v1/videos?limit=1'))
  check('DeletedVideoResource', await read('DELETE', path))
})

test('a kept response and the items of its input', async () => {
  const items = [
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    { role: 'assistant', content: 'Hello.' },
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: 'done' },
    { role: 'user', content: 'Go on' },
  ]
  const { id } = await read('POST', '/std/v1/responses', { ...response, input: items })
  check('Response', await read('GET', `/std/v1/responses/${id}`))
  check('ResponseItemList', await read('GET', `/std/v1/responses/${id}/input_items`))
  const queued = await read('POST', '/std/v1/responses', { ...response, background: true })
  check('Response', queued)
  await checkToEnd('Response', `/std/v1/responses/${queued.id}`)
})

/** Sends a request for a stream and returns its events. */
async function events(path: string, body: object): Promise<{ type: string }[]> {
  const text = await (await send('POST', path, { ...body, stream: true })).text()
  return text
    .split('\n\n')
    .flatMap(frame => frame.match(/^data: (\{.*)$/m)?.[1] ?? [])
    .map(data => JSON.parse(data) as { type: string })
}

test.each<[string, object]>([
  ['a text', {}],
  ['a text that is cut off', { max_output_tokens: 2 }],
  ['a call', calling],
])('every event of a response is valid: %s', async (_, more) => {
  const all = await events('/std/v1/responses', { ...response, ...more })
  expect(all.length).toBeGreaterThan(5)
  for (const event of all) check(eventSchemaOf('ResponseStreamEvent', event.type), event)
})

test('every chunk of a chat completion is valid', async () => {
  const chunks = await events('/std/v1/chat/completions', chat)
  expect(chunks.length).toBeGreaterThan(2)
  for (const chunk of chunks) check('CreateChatCompletionStreamResponse', chunk)
})
