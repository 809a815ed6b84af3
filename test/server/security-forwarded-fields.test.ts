import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { completionOf, wholeCompletion } from '../fixtures/engine-answers.ts'
import { openScriptedEngine, type ScriptedEngine, well } from './_scripted-engine.ts'

/** T-SEC-4: what engines receive is a list of known fields. Whatever else a request has is not forwarded. */

let engine: ScriptedEngine
let app: TestApp
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    if (seen.path !== '/v1/completions') return well(seen, response)
    const answer = wholeCompletion(completionOf(seen.body, 'scripted', undefined), seen.body)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const price = { input_per_million_tokens: 1, output_per_million_tokens: 1 }
  app = await startApp({ models: [engine.model('far', { price })] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const text = 'Hello'
const routes: [path: string, body: object, forwarded: string[]][] = [
  [
    '/std/v1/chat/completions',
    { messages: [{ role: 'user', content: text }] },
    ['model', 'messages', 'max_tokens', 'stream', 'stream_options'],
  ],
  ['/std/v1/responses', { input: text }, ['model', 'messages', 'stream', 'stream_options']],
  ['/std/v1/completions', { prompt: text }, ['model', 'prompt', 'max_tokens', 'stream', 'stream_options']],
  ['/std/v1/embeddings', { input: text }, ['model', 'input', 'encoding_format']],
  ['/std/v1/rerank', { query: text, documents: [text] }, ['model', 'query', 'documents', 'top_n', 'return_documents']],
  ['/std/v1/score', { text_1: text, text_2: text }, ['model', 'text_1', 'text_2']],
]

/** Fields that have led engines and gateways to fetch URLs, run code, read files or change other requests. */
const dangerous: Record<string, unknown> = {
  api_base: 'http://169.254.169.254/',
  base_url: 'http://169.254.169.254/',
  api_key: 'sk-other',
  api_version: '1',
  custom_llm_provider: 'openai',
  extra_body: { api_base: 'http://evil' },
  extra_headers: { authorization: 'Bearer x' },
  headers: { authorization: 'Bearer x' },
  prompt_embeds: 'gASVIAAAAAAAAACMBXBvc2l4',
  chat_template: '{{ self.__init__.__globals__ }}',
  documents_path: '/etc/passwd',
  mm_processor_kwargs: { trust_remote_code: true },
  media_io_kwargs: { video: { path: '/etc/passwd' } },
  kv_transfer_params: { remote_host: 'evil' },
  vllm_xargs: { a: 1 },
  guided_decoding_backend: 'x',
  guided_grammar: 'root ::= "x"',
  guided_regex: '(a+)+$',
  structural_tag: '{}',
  logits_processors: [{ qualname: 'os.system', args: ['id'] }],
  lora_request: { lora_path: '/etc' },
  slot_id: 0,
  id_slot: 0,
  cache_prompt: true,
  trust_remote_code: true,
  request_id: 'of another',
  best_of: 1e308,
  user: 'someone',
  metadata: { secret: 'x' },
  __proto__: { polluted: true },
  constructor: { prototype: { polluted: true } },
}

test.each(routes)('T-SEC-4: %s forwards known fields only', async (path, body, known) => {
  const sent = engine.seen.length
  let accepted = 0
  for (const [name, value] of Object.entries(dangerous)) {
    const whole = JSON.stringify({ model: 'far', ...body }).replace(/\}$/, `,"${name}":${JSON.stringify(value)}}`)
    const response = await app.fetch(path, { body: whole })
    // A field may be refused; it may never be forwarded, and never break anything.
    expect([200, 400, 422], `${name}: ${await response.text()}`).toContain(response.status)
    if (response.status === 200) accepted++
  }
  expect(accepted).toBeGreaterThan(20)
  for (const { body: received, headers } of engine.seen.slice(sent)) {
    expect(Object.keys(received).filter(name => !known.includes(name))).toEqual([])
    expect(JSON.stringify([received, headers])).not.toMatch(/evil|169\.254|passwd|polluted|sk-other|__globals__/)
  }
})

test.each(routes)('T-SEC-4: %s forwards nothing of the query, the headers and the token', async (path, body) => {
  const headers = { cookie: 'a=mine', 'x-api-base': 'http://evil', 'x-user': 'mine', forwarded: 'for=mine' }
  const response = await app.fetch(`${path}?api_base=http://evil`, { body: { model: 'far', ...body }, headers })
  expect(response.status).toBe(200)
  const { path: received, headers: own } = engine.seen.at(-1)!
  expect(received).not.toContain('?')
  expect(JSON.stringify(own)).not.toMatch(/mine|evil|sk-infer/)
})

test('T-SEC-4: variables of the chat template are forwarded, but no other template and no arguments of its rendering', async () => {
  const messages = [{ role: 'user', content: text }]
  const chat_template_kwargs = {
    enable_thinking: false,
    chat_template: '{{ self.__init__.__globals__ }}',
    tokenize: true,
    max_length: 1e12,
    tokenizer_kwargs: { evil: true },
  }
  const response = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'far', messages, chat_template_kwargs },
  })
  expect(response.status).toBe(200)
  expect(engine.seen.at(-1)!.body['chat_template_kwargs']).toEqual({ enable_thinking: false })
})

/** By these vLLM and SGLang are parked, and run any of their methods. Only infer may send them. */
const parking = [
  '/sleep',
  '/wake_up',
  '/is_sleeping',
  '/collective_rpc',
  '/release_memory_occupation',
  '/resume_memory_occupation',
]

test.each(parking.flatMap(path => ['', '/std/v1', '/v1', '/api', '/far'].map(prefix => prefix + path)))(
  'T-SEC-4: %s reaches no engine, not even with the root token',
  async path => {
    const sent = engine.seen.length
    for (const method of ['GET', 'POST'])
      expect(
        (await app.fetch(`${path}?level=1`, { method, body: method === 'POST' ? { model: 'far' } : undefined })).status,
        method,
      ).toBeGreaterThanOrEqual(404)
    expect(engine.seen.length).toBe(sent)
  },
)
