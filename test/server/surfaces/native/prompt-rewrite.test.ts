import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { ask, painters } from '../slug/_painter.ts'

let app: TestApp
let bare: TestApp
const reply = (text: string) => `mode:rewrites,text=${encodeURIComponent(text)}`
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('writer'),
      fakeModel('lines', [], { features: [] }),
      fakeModel('vectors', [], { tasks: ['std/embeddings'] }),
      ...painters,
    ],
    prompt_rewriting: { model: 'writer', instructions: 'Never show people.' },
  })
  bare = await startApp({ models: painters })
})
afterAll(() => Promise.all([app[Symbol.asyncDispose](), bare[Symbol.asyncDispose]()]))

const path = '/api/prompt-rewrite'
const rewrite = (body: object, more: object = {}) => ask(app, path, { body, ...more })

test('rewrites a prompt with the configured chat model, and returns both prompts, the model, the task and the usage', async () => {
  const { status, body, headers } = await rewrite({ prompt: 'a cat mode:rewrites', task: 'slug/text-to-video' })
  expect([status, body]).toEqual([
    200,
    {
      original_prompt: 'a cat mode:rewrites',
      rewritten_prompt: 'rewritten 1',
      prompt: 'rewritten 1',
      alternatives: [],
      model: 'writer',
      task: 'slug/text-to-video',
      usage: {
        prompt_tokens: expect.any(Number),
        completion_tokens: expect.any(Number),
        total_tokens: expect.any(Number),
      },
    },
  ])
  const job = await ask(app, `/api/jobs/${headers.get('x-job-id')}`)
  expect(job.body).toMatchObject({ kind: 'sync', task: 'std/chat-completion', model_id: 'writer', status: 'completed' })
  expect(job.body.usage.output_tokens).toBe(body.usage.completion_tokens)
})

test('n asks for alternatives', async () => {
  const { body } = await rewrite({ prompt: 'a cat mode:rewrites', n: 4 })
  expect([body.prompt, body.alternatives]).toEqual(['rewritten 1', ['rewritten 2', 'rewritten 3', 'rewritten 4']])
})

test('an engine that cannot be held to a schema answers with lines', async () => {
  const prompt = `a cat ${reply('1. one\n2. two')}`
  const { body } = await rewrite({ prompt, n: 2, rewriter_model: 'lines' })
  expect([body.prompt, body.alternatives, body.model]).toEqual(['one', ['two'], 'lines'])
})

test('max_length cuts a prompt', async () => {
  const { body } = await rewrite({ prompt: reply('{"prompts":["A red cat sits on a mat"]}'), max_length: 20 })
  expect(body.prompt).toBe('A red cat sits on a')
})

test.each([
  ['one of several of a model', { model_id: 'painter', task: 'slug/text-to-video' }, 'slug/text-to-video'],
  ['the first task of a model', { model_id: 'solo' }, 'slug/text-to-image'],
  ['none', {}, 'slug/text-to-image'],
])('the task: %s', async (_, more, task) => {
  const { body } = await rewrite({ prompt: 'a cat mode:rewrites', ...more })
  expect(body.task ?? body).toBe(task)
})

test('an image goes to a model that can see images', async () => {
  const png = await sharp({ create: { width: 8, height: 8, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const image_url = `data:image/png;base64,${png.toString('base64')}`
  expect((await rewrite({ prompt: 'a cat', image_url })).status).toBe(200)
  const refused = await rewrite({ prompt: 'a cat', image_url, rewriter_model: 'lines' })
  expect([refused.status, refused.body.error]).toMatchObject([
    400,
    { code: 'unsupported_parameter', param: 'image_url', message: expect.stringContaining('cannot see images') },
  ])
})

test.each([
  ['an empty answer', ' '],
  ['JSON that was cut off', '{"prompts":["a re'],
  ['punctuation', '…'],
])('%s is no prompt: 502 worker_error', async (_, text) => {
  const { status, body } = await rewrite({ prompt: `a cat ${reply(text)}` })
  expect([status, body.error.code]).toEqual([502, 'worker_error'])
  expect(body.error.message).toContain("The model 'writer' did not answer with a prompt.")
})

const refused: [string, object, number, object][] = [
  ['without a prompt', {}, 400, { code: 'missing_required_parameter', param: 'prompt' }],
  ['an empty prompt', { prompt: ' ' }, 400, { code: 'invalid_value', param: 'prompt' }],
  ['five versions', { prompt: 'a', n: 5 }, 400, { code: 'invalid_value', param: 'n' }],
  ['another task', { prompt: 'a', task: 'std/rerank' }, 400, { code: 'invalid_value', param: 'task' }],
  ['an unknown field', { prompt: 'a', styl: 'b' }, 400, { code: 'unknown_parameter' }],
  ['an unknown model', { prompt: 'a', model_id: 'nobody' }, 404, { code: 'model_not_found', param: 'model_id' }],
  [
    'a model without the task',
    { prompt: 'a', model_id: 'solo', task: 'slug/text-to-video' },
    400,
    { code: 'unsupported_task', param: 'model_id' },
  ],
  ['a text model', { prompt: 'a', model_id: 'writer' }, 400, { code: 'unsupported_task', param: 'model_id' }],
  [
    'an unknown rewriter',
    { prompt: 'a', rewriter_model: 'nobody' },
    404,
    { code: 'model_not_found', param: 'rewriter_model' },
  ],
  [
    'a rewriter without chat',
    { prompt: 'a', rewriter_model: 'vectors' },
    400,
    { code: 'unsupported_task', param: 'rewriter_model' },
  ],
]
test.each(refused)('refuses %s', async (_, body, status, error) => {
  const answer = await rewrite(body)
  expect([answer.status, answer.body.error]).toMatchObject([status, error])
})

test('a token that may not use the chat model is refused', async () => {
  const { secret } = await makeOrganization(app, { models: ['painter'] })
  const { status, body } = await rewrite({ prompt: 'a cat' }, { token: secret })
  expect([status, body.error.code]).toEqual([403, 'model_not_allowed'])
})

test('without a configured model the refusal says how to configure one, and that no retry helps', async () => {
  const { status, body, headers } = await ask(bare, path, { body: { prompt: 'a cat' } })
  expect([status, body.error.code, headers.get('x-should-retry'), headers.get('retry-after')]).toEqual([
    503,
    'no_capacity',
    'false',
    null,
  ])
  expect(body.error.message).toContain("Set 'prompt_rewriting.model' in infer.yaml")
})

test('an idempotency key returns the first answer again', async () => {
  const headers = { 'idempotency-key': 'rewrite-1' }
  const first = await rewrite({ prompt: 'a cat mode:rewrites' }, { headers })
  const second = await rewrite({ prompt: 'a cat mode:rewrites' }, { headers })
  expect(second.text).toBe(first.text)
  expect([second.headers.get('idempotent-replayed'), second.headers.get('x-job-id')]).toEqual([
    'true',
    first.headers.get('x-job-id'),
  ])
  expect((await rewrite({ prompt: 'a dog' }, { headers })).body.error.code).toBe('idempotency_key_reused')
})
