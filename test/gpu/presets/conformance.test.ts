import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeEngine, fakeModel, fakeNeeds, startApp, type TestApp } from '../../_app.ts'
import { type OwnEngine, startEngine } from '../../_engine.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'
import { faults } from '../../golden/openai.ts'

/**
 * What a client sees of every engine with the supported features. Each preset starts the fake like the real engine
 * (`llama-server` and `vllm` are found in PATH), and the fake behaves like it; a request names further quirks to apply.
 * A row lists what the client must see, both for a whole answer and for the same answer streamed.
 */
const presets = ['llama-server', 'vllm', 'custom', 'remote'] as const
type Preset = (typeof presets)[number]

let app: TestApp
let far: OwnEngine
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const path = process.env.PATH
const program = (name: string, line: string) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`)
  chmodSync(join(bin, name), 0o755)
}
const vectors = ['std/embeddings', 'std/rerank', 'std/score']

beforeAll(async () => {
  const engine = `exec '${process.execPath}' '${fakeEngine}'`
  program('llama-server', `${engine} --as llama-server --ready-after 300 "$@"`)
  program('vllm', `${engine} --as vllm --refuse-for 200 "$@"`)
  installNvidiaSmi(bin, { cards: `echo '${cardLine()}'` })
  process.env.PATH = `${bin}:${path}`
  far = await startEngine(['--id', 'far'])
  const llama = { engine: 'llama-server', source: '/models/m.gguf', devices: 'cpu', memory: '16MiB', ...fakeNeeds }
  const vllm = { engine: 'vllm', source: 'org/m', memory: '16MiB', ...fakeNeeds }
  const all = ['std/chat-completion', 'std/completion', ...vectors]
  app = await startApp({
    models: [
      { id: 'llama-server', ...llama, tasks: ['std/chat-completion', 'std/completion', 'std/embeddings'] },
      { id: 'llama-server-seeing', ...llama, features: ['images'] },
      { id: 'llama-server-vectors', ...llama, tasks: ['std/embeddings'] },
      { id: 'llama-server-ranker', ...llama, tasks: ['std/rerank', 'std/score'] },
      { id: 'vllm', ...vllm, tasks: ['std/chat-completion', 'std/completion'] },
      { id: 'vllm-vectors', ...vllm, tasks: vectors },
      fakeModel('custom', ['--id', 'custom'], { tasks: all }),
      fakeModel('custom-early', ['--ready-after', '700', '--early-models'], { tasks: all }),
      fakeModel('custom-logits', [], { tasks: vectors, rerank_scores: 'logit' }),
      { id: 'remote', engine: 'remote', url: `${far.url}/v1`, tasks: all },
      { id: 'remote-plain', engine: 'remote', url: `${far.url}/v1`, tasks: all, features: [] },
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

/** The parts of an answer that a client uses. */
interface Seen {
  status: number
  error: { code: string; message: string; param: string | null } | undefined
  text: string
  reasoning: string
  calls: { id: string; name: string; arguments: string }[]
  finish: string | null
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | undefined
  logprobs: unknown[]
}

/** Every member that an answer may have, at any depth; members of a free map are not checked. */
const members = new Set(
  `id object created model choices usage service_tier system_fingerprint index message delta text logprobs finish_reason
  role content refusal annotations reasoning_content tool_calls type function name arguments token logprob bytes
  top_logprobs tokens token_logprobs text_offset prompt_tokens completion_tokens total_tokens prompt_tokens_details
  completion_tokens_details cached_tokens audio_tokens reasoning_tokens accepted_prediction_tokens
  rejected_prediction_tokens`.split(/\s+/),
)
function foreign(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(foreign)
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(members.has(name) ? [] : [name]),
    ...(name === 'top_logprobs' && !('token' in value) ? [] : foreign(inner)),
  ])
}

// oxlint-disable-next-line no-explicit-any
type Any = any
const nothing = (): Omit<Seen, 'status'> => ({
  error: undefined,
  text: '',
  reasoning: '',
  calls: [],
  finish: null,
  logprobs: [],
})

async function whole(route: string, body: object): Promise<Seen> {
  const response = await app.fetch(`/std/v1${route}`, { body })
  const value = (await response.json()) as Any
  if (response.status !== 200) return { ...nothing(), status: response.status, error: value.error }
  const chat = route === '/chat/completions'
  expect(faults(chat ? 'CreateChatCompletionResponse' : 'CreateCompletionResponse', value)).toEqual([])
  expect(foreign(value)).toEqual([])
  expect(value.model).toBe((body as { model: string }).model)
  const [choice] = value.choices
  return {
    status: 200,
    error: undefined,
    text: chat ? (choice.message.content ?? '') : choice.text,
    reasoning: choice.message?.reasoning_content ?? '',
    calls: (choice.message?.tool_calls ?? []).map((call: Any) => ({ id: call.id, ...call.function })),
    finish: choice.finish_reason,
    usage: value.usage,
    logprobs: choice.logprobs ? [choice.logprobs] : [],
  }
}

/** Reads a stream as a strict client does, and checks the rules of the API. */
async function streamed(route: string, body: object): Promise<Seen> {
  const chat = route === '/chat/completions'
  const response = await app.fetch(`/std/v1${route}`, {
    body: { ...body, stream: true, stream_options: { include_usage: true } },
  })
  if (response.status !== 200) {
    const { error } = (await response.json()) as { error: Seen['error'] }
    return { ...nothing(), status: response.status, error }
  }
  const seen: Seen = { ...nothing(), status: 200 }
  const text = await response.text()
  expect(text).not.toContain('\r')
  expect(text.endsWith('\n\n')).toBe(true)
  const events = text.split('\n\n').filter(event => event !== '' && event !== ': ping')
  expect(events.every(event => event.startsWith('data: ') && !event.includes('\n'))).toBe(true)
  const last = events.pop()!.slice('data: '.length)
  const chunks: Any[] = events.map(event => JSON.parse(event.slice('data: '.length)))
  if (last !== '[DONE]') seen.error = (JSON.parse(last) as { error: Seen['error'] }).error
  else {
    const usage = chunks.pop()
    expect([usage.choices, chunks.every(chunk => chunk.usage === null)]).toEqual([[], true])
    seen.usage = usage.usage
  }
  for (const chunk of chunks) {
    expect(
      faults(chat ? 'CreateChatCompletionStreamResponse' : 'CreateCompletionResponse', { ...chunk, usage: undefined }),
    ).toEqual([])
    expect(foreign(chunk)).toEqual([])
  }
  expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
  expect(chunks[0].model).toBe((body as { model: string }).model)
  const choices = chunks.flatMap(chunk => chunk.choices)
  const calls = new Map<number, Seen['calls'][number]>()
  choices.forEach((choice: Any, at) => {
    if (chat) expect('role' in choice.delta).toBe(at === 0)
    seen.text += (chat ? choice.delta.content : choice.text) ?? ''
    seen.reasoning += choice.delta?.reasoning_content ?? ''
    if (choice.logprobs) seen.logprobs.push(choice.logprobs)
    expect(seen.finish).toBeNull()
    seen.finish = choice.finish_reason
    for (const { index, id, type, function: said } of choice.delta?.tool_calls ?? []) {
      const call = calls.get(index)
      if (!call)
        expect([index, type, typeof id, typeof said.name]).toEqual([calls.size, 'function', 'string', 'string'])
      calls.set(index, {
        id: call?.id ?? id,
        name: call?.name ?? said.name,
        arguments: (call?.arguments ?? '') + said.arguments,
      })
    }
  })
  seen.calls = [...calls.values()]
  return seen
}

const ways = { whole, streamed }
type Way = keyof typeof ways
const chat = (model: string, said: string, more: object = {}) => ({
  model,
  messages: [{ role: 'user', content: said }],
  ...more,
})

interface Row {
  /** The behaviour of the engine, and the mode that makes the fake show it. */
  quirk: string
  mode: string
  more?: object
  /** The presets that show it; all when omitted. */
  of?: readonly Preset[]
  seen: object
  /** What differs between whole and streamed answers. */
  whole?: object
  streamed?: object
  /** For a whole answer for which the engine streams. */
  collected?: object
}

/** The presets that stream for whole answers too: they report usage during the answer. */
const collecting: readonly Preset[] = ['llama-server', 'vllm']

const sentence = 'Hello from the fake engine.'
const usage = { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 }
const fine = { status: 200, text: sentence, finish: 'stop', usage, error: undefined }
const tools = ['f', 'g'].map(name => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
}))
const calls = ['f', 'g'].map((name, at) => ({
  id: expect.stringMatching(/^call_/) as string,
  name,
  arguments: `{"n":${at}}`,
}))
const refused = (status: number, code: string, message: RegExp, more: object = {}) => ({
  status,
  error: { code, message: expect.stringMatching(message) as string, ...more },
})
/** The same error, after the stream has begun. */
const late = (code: string, message: RegExp, text: string = expect.any(String) as string) => ({
  ...refused(200, code, message),
  text,
})
const either = (status: number, code: string, message: RegExp) => ({
  whole: refused(status, code, message),
  streamed: late(code, message),
})
const others = ['custom', 'remote'] as const

const rows: Row[] = [
  { quirk: 'standard behaviour of the preset', mode: 'well', seen: fine },
  { quirk: 'lines that end in CRLF', mode: 'crlf', seen: fine },
  { quirk: 'comments, and fields besides data', mode: 'comments', seen: fine },
  { quirk: 'data: without a space', mode: 'no-space', seen: fine },
  { quirk: 'a byte order mark', mode: 'byte-order-mark', seen: fine },
  { quirk: 'no [DONE]', mode: 'no-done', seen: fine },
  { quirk: 'no blank line after the last event', mode: 'no-last-blank', seen: fine },
  {
    quirk: 'events and characters split anywhere',
    mode: 'pieces',
    seen: { ...fine, text: 'Grüße 😀 "zitiert" \\ und\nmehr' },
  },
  { quirk: 'no role in the first delta', mode: 'no-role', seen: fine },
  { quirk: 'a role in every delta', mode: 'role-again', seen: fine },
  { quirk: 'content that is null', mode: 'null-content', seen: { ...fine, text: '' } },
  { quirk: 'content as a list of parts', mode: 'parts', seen: fine },
  { quirk: 'empty deltas and events without choices', mode: 'empty-deltas', seen: fine },
  { quirk: 'reasoning', mode: 'reasoning,member=reasoning', seen: { ...fine, reasoning: 'Let me think.' } },
  {
    quirk: 'reasoning_content',
    mode: 'reasoning,member=reasoning_content',
    seen: { ...fine, reasoning: 'Let me think.' },
  },
  { quirk: 'additional members', mode: 'extra', seen: fine },
  { quirk: 'another name, and ids and times that change', mode: 'other-name', seen: fine },
  ...(['null', 'eos_token', 'end_turn', 'stop_sequence', 'whatever'] as const).map(reason => ({
    quirk: `finish reason ${reason}`,
    mode: `finish,reason=${reason}`,
    seen: fine,
  })),
  { quirk: 'max_tokens as finish reason', mode: 'finish,reason=max_tokens', seen: { ...fine, finish: 'length' } },
  {
    quirk: 'abort as finish reason',
    mode: 'finish,reason=abort',
    seen: {},
    ...either(502, 'worker_error', /broke its answer off/),
  },
  {
    quirk: 'a stream that ends in the middle',
    mode: 'broken-off',
    seen: {},
    whole: fine,
    streamed: late('worker_error', /a stream that broke off/, sentence),
    collected: refused(502, 'worker_error', /a stream that broke off/),
  },
  {
    quirk: 'an event that is not JSON',
    mode: 'bad-json',
    seen: {},
    whole: fine,
    streamed: late('worker_error', /not JSON/),
    collected: refused(502, 'worker_error', /not JSON/),
  },
  ...(['', 'no-index', 'all-0', 'no-ids', 'objects', 'nulls'] as const).map(how => ({
    quirk: `tool calls: ${how || 'in chunks'}`,
    mode: `calls,how=${how || 'well'}`,
    more: { tools },
    seen: { ...fine, text: '', finish: 'tool_calls', usage: expect.anything() as object, calls },
  })),
  {
    quirk: 'a tool_choice that names one (llama-server ignores it)',
    mode: 'well',
    more: { tools, tool_choice: { type: 'function', function: { name: 'g' } } },
    seen: { status: 200, finish: 'tool_calls', calls: [{ ...calls[1], arguments: '{}' }] },
  },
  ...(['last', 'choice', 'groq', 'every'] as const).map(where => ({
    quirk: `usage position: ${where}`,
    mode: `usage,where=${where}`,
    seen: fine,
  })),
  {
    quirk: 'no usage',
    mode: 'usage,where=none',
    of: others,
    seen: { status: 200, text: sentence },
    whole: { usage: { prompt_tokens: 0, completion_tokens: 0 } },
    // Received tokens are counted by chunk; the length of a prompt without a count is not estimated.
    streamed: { usage: { prompt_tokens: 0, completion_tokens: 5 } },
  },
  ...(['object', 'flat', 'string', 'detail', 'fields', 'message', 'text', 'html'] as const).map(shape => ({
    quirk: `an error as ${shape}`,
    mode: `refuse,shape=${shape},text=temperature_is_wrong`,
    seen: refused(400, 'invalid_value', /^The engine refused the request: (temperature: |400 )?temperature is wrong$/),
  })),
  { quirk: 'an error without a message', mode: 'refuse,shape=nothing', seen: refused(400, 'invalid_value', /\(400\)/) },
  {
    quirk: 'an error with 422',
    mode: 'refuse,shape=fields,code=422,text=bad',
    seen: refused(400, 'invalid_value', /temperature: bad/),
  },
  {
    quirk: 'an internal error',
    mode: 'refuse,code=500,text=oops',
    seen: refused(502, 'worker_error', /answered 500\. Trying/),
  },
  {
    quirk: 'an internal error as HTML',
    mode: 'refuse,shape=html,code=502,text=Bad_Gateway',
    seen: refused(502, 'worker_error', /answered 502\. Trying/),
  },
  {
    quirk: 'a wrong key that infer sends',
    mode: 'refuse,code=401,text=Unauthorized',
    seen: refused(502, 'worker_error', /answered 401/),
  },
  {
    quirk: '503 Loading model',
    mode: 'refuse,code=503,text=Loading_model',
    seen: refused(503, 'model_warming_up', /still loading\. Try/),
  },
  {
    quirk: '429',
    mode: 'refuse,code=429,text=slow_down',
    seen: refused(503, 'no_capacity', /takes no more requests\. Try/),
  },
  {
    quirk: 'an error with status 200',
    mode: 'error-200,shape=flat,code=400,text=bad_value',
    seen: {},
    whole: refused(400, 'invalid_value', /bad value/),
    streamed: refused(502, 'worker_error', /application\/json/),
  },
  ...(['object', 'flat', 'string', 'detail'] as const).map(shape => ({
    quirk: `an error in mid-stream as ${shape}`,
    mode: `error-frame,shape=${shape}`,
    seen: {},
    whole: fine,
    streamed: late('worker_error', /gave up on its answer\. Trying/),
    collected: refused(502, 'worker_error', /gave up on its answer\. Trying/),
  })),
  {
    quirk: 'an error in mid-stream as event: error',
    mode: 'error-frame,shape=message,event=1',
    seen: {},
    whole: fine,
    streamed: late('worker_error', /gave up on its answer\. Trying/),
    collected: refused(502, 'worker_error', /gave up on its answer\. Trying/),
  },
  {
    quirk: 'an error in mid-stream, its status in code',
    mode: 'error-frame,code=400,text=bad_value',
    seen: {},
    whole: fine,
    streamed: late('invalid_value', /bad value/),
    collected: refused(400, 'invalid_value', /bad value/),
  },
  ...(
    [
      ['llama-server', ['llama-server']],
      ['llama-server-old', ['llama-server']],
      ['llama-server-vectors', ['llama-server']],
      ['vllm', ['vllm', ...others]],
      ['vllm-old', ['vllm', ...others]],
      ['vllm-decoder', ['vllm', ...others]],
      ['sglang', others],
      ['tei', others],
      ['openai', others],
    ] as const
  ).map(([as, of]) => ({
    quirk: `a prompt too long, reported by ${as}`,
    mode: `too-long,as=${as}`,
    of,
    seen: refused(400, 'context_length_exceeded', /2048.*3000/, { prompt_tokens: 3000, context_length: 2048 }),
  })),
  {
    quirk: 'half a surrogate pair: 500, because it is not JSON for the engine',
    mode: '\ud800',
    of: ['llama-server'],
    seen: refused(400, 'invalid_json', /surrogate/),
  },
]

describe('chats', () => {
  const cases = rows.flatMap(row =>
    (row.of ?? presets).flatMap(preset =>
      (Object.keys(ways) as Way[]).map(way => [row.quirk, preset, way, row] as [string, Preset, Way, Row]),
    ),
  )
  test.each(cases)('%s: %s, %s', async (_quirk, preset, way, { mode, more, seen, ...differ }) => {
    const said = mode.includes('\ud800') ? mode : `mode:${mode}`
    const how = way === 'whole' && differ.collected && collecting.includes(preset) ? 'collected' : way
    expect(await ways[way]('/chat/completions', chat(preset, said, more))).toMatchObject({ ...seen, ...differ[how] })
  })

  test('an image sent to a llama-server without a projector', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const content = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }]
    const body = { model: 'llama-server-seeing', messages: [{ role: 'user', content }] }
    expect(await whole('/chat/completions', body)).toMatchObject(
      refused(400, 'unsupported_parameter', /image input is not supported/),
    )
  })

  test('an engine whose /v1/models answers early gets no request before it is ready', async () => {
    expect(await whole('/chat/completions', chat('custom-early', 'Hello'))).toMatchObject({
      status: 200,
      text: sentence,
    })
    const { early } = JSON.parse((await whole('/chat/completions', chat('custom-early', 'mode:stats'))).text) as {
      early: number
    }
    expect(early).toBe(0)
  })
})

describe('completions', () => {
  const prompt = (model: string, mode: string, more: object = {}) => ({ model, prompt: `mode:${mode}`, ...more })
  const continued = {
    status: 200,
    error: undefined,
    text: ' and so on',
    finish: 'stop',
    usage: { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 },
  }
  const modes = [
    'well',
    'crlf',
    'comments',
    'no-done',
    'no-space',
    'extra',
    'other-name',
    'finish,reason=eos_token',
    'usage,where=last',
  ]
  const cases = presets.flatMap(preset =>
    modes.flatMap(mode => (Object.keys(ways) as Way[]).map(way => [preset, mode, way] as const)),
  )
  test.each(cases)('%s, %s, %s', async (preset, mode, way) => {
    expect(await ways[way]('/completions', prompt(preset, mode))).toMatchObject(continued)
  })

  test.each(presets)('%s: log probabilities in the format of completions', async preset => {
    const { logprobs } = await whole('/completions', prompt(preset, 'well', { logprobs: 1 }))
    expect(logprobs).toEqual([
      {
        tokens: [' and', ' so', ' on'],
        token_logprobs: [-0.5, -0.5, -0.5],
        top_logprobs: [' and', ' so', ' on'].map(token => ({ [token]: -0.5, other: -1.5 })),
        text_offset: [0, 4, 7],
      },
    ])
  })

  test.each(presets)('%s: several prompts, several choices each, in their order', async preset => {
    const response = await app.fetch('/std/v1/completions', {
      body: { model: preset, prompt: ['one two', 'three'], ...(preset === 'llama-server' ? {} : { n: 2 }) },
    })
    const { choices, usage: used } = (await response.json()) as {
      choices: { index: number; text: string }[]
      usage: object
    }
    const n = preset === 'llama-server' ? 1 : 2
    expect(choices.map(({ index, text }) => [index, text])).toEqual(
      Array.from({ length: 2 * n }, (_, at) => [at, ' and so on']),
    )
    expect(used).toMatchObject({ prompt_tokens: 3, completion_tokens: 6 * n })
  })

  test.each<[Preset | 'remote-plain', object, string, string]>([
    ['llama-server', { echo: true }, 'unsupported_parameter', 'echo'],
    ['llama-server', { suffix: 'x' }, 'unsupported_parameter', 'suffix'],
    ['llama-server', { best_of: 2 }, 'unsupported_parameter', 'best_of'],
    ['llama-server', { prompt: ['a', 'b'], stream: true }, 'unsupported_parameter', 'prompt'],
    ['vllm', { suffix: 'x' }, 'unsupported_parameter', 'suffix'],
    ['remote-plain', { logprobs: 1 }, 'unsupported_parameter', 'logprobs'],
    ['remote-plain', { n: 2 }, 'unsupported_parameter', 'n'],
  ])('%s cannot do %o: refused by name', async (model, more, code, param) => {
    expect(await whole('/completions', prompt(model, 'well', more))).toMatchObject({
      status: 400,
      error: { code, param },
    })
  })

  test('parameters without effect are not sent to a llama-server, which would refuse them', async () => {
    const body = prompt('llama-server', 'well', { best_of: 1, n: 1, echo: false, suffix: '' })
    expect(await whole('/completions', body)).toMatchObject(continued)
  })
})

describe('vectors and scores', () => {
  const ask = async (route: string, body: object) => {
    const response = await app.fetch(`/std/v1${route}`, { body })
    return { status: response.status, body: (await response.json()) as Any }
  }
  const vectorOf = async (model: string, mode: string, encoding_format: string, more: object = {}) => {
    const { status, body } = await ask('/embeddings', { model, input: [`mode:${mode}`, 'b'], encoding_format, ...more })
    expect([status, body.error]).toEqual([200, undefined])
    if (encoding_format === 'float') expect(faults('CreateEmbeddingResponse', body)).toEqual([])
    expect(body.data.map(({ index }: Any) => index)).toEqual([0, 1])
    return body.data.map(({ embedding }: Any) =>
      typeof embedding === 'string'
        ? [...new Float32Array(new Uint8Array(Buffer.from(embedding, 'base64')).buffer)]
        : embedding,
    ) as number[][]
  }
  const able = ['llama-server-vectors', 'vllm-vectors', 'custom', 'remote']

  test.each(
    able.flatMap(model => ['well', 'out-of-order', 'floats-only', 'base64-only'].map(mode => [model, mode] as const)),
  )('%s, %s: the same vectors in both encodings, in the order of the input', async (model, mode) => {
    if (mode === 'bare-list') return
    const plain = await vectorOf(model, mode, 'float')
    expect(await vectorOf(model, mode, 'base64')).toEqual(plain.map(vector => [...Float32Array.from(vector)]))
    expect(plain[1]).toEqual((await vectorOf('custom', 'well', 'float'))[1])
    const [cutTo] = await vectorOf(model, mode, 'float', { dimensions: 4 })
    if (model !== 'vllm-vectors') expect([cutTo!.length, Math.hypot(...cutTo!)]).toEqual([4, expect.closeTo(1)])
  })

  test('embeddings of a llama-server that was started for chat: 501 means the task is not supported', async () => {
    const { status, body } = await ask('/embeddings', { model: 'llama-server', input: 'a' })
    expect([status, body.error.code]).toEqual([400, 'unsupported_task'])
  })

  const ranked = (model: string, query: string, more: object = {}) =>
    ask('/rerank', { model, query, documents: ['nothing of it', 'cat mat'], ...more })
  const sigmoid = (logit: number) => 1 / (1 + Math.exp(-logit))

  test.each<[string, string, number[]]>([
    ['llama-server-ranker', 'cat', [sigmoid(4), sigmoid(-4)]],
    ['vllm-vectors', 'cat', [1, 0]],
    ['custom', 'cat', [1, 0]],
    ['remote', 'cat', [1, 0]],
    ['remote', 'cat mode:bare-list', [expect.closeTo(1 / 4), 0] as number[]],
    ['custom-logits', 'cat mode:logits', [expect.closeTo(sigmoid(8 / 3 - 4)), sigmoid(-4)] as number[]],
  ])('%s ranks %s with probabilities', async (model, query, scores) => {
    const { status, body } = await ranked(model, query)
    expect(status, JSON.stringify(body)).toBe(200)
    expect(body.data.map((item: Any) => item.relevance_score)).toEqual(scores)
    expect(body.data.map((item: Any) => item.index)).toEqual([1, 0])
    expect(body.model).toBe(model)
  })

  test('logits where probabilities are expected are refused', async () => {
    const { status, body } = await ranked('remote', 'cat mode:logits')
    expect([status, body.error.code]).toEqual([502, 'worker_error'])
    expect(body.error.message).toContain('rerank_scores: logit')
  })

  test('pairs are scored by reranking where the engine does not do anything else', async () => {
    const { body } = await ask('/score', { model: 'llama-server-ranker', text_1: 'cat', text_2: ['dog', 'cat'] })
    expect(body.data.map((item: Any) => item.score)).toEqual([sigmoid(-4), sigmoid(4)])
  })
})

describe('more tokens than fit in the context', () => {
  test.each(presets.flatMap(model => [false, true].map(stream => [model, stream] as const)))(
    '%s cuts the answer to the tokens that fit (stream: %s)',
    async (model, stream) => {
      const body = chat(model, 'one two three', { stream, max_tokens: 100_000 })
      const response = await app.fetch('/std/v1/chat/completions', { body })
      const text = await response.text()
      expect(response.status, text).toBe(200)
      expect(text).toContain('Hello')
    },
  )
})

describe('a whole answer whose client disconnects', () => {
  /** Output tokens of a model since the start. */
  const tokens = async (model: string) =>
    Number(
      new RegExp(`^infer_tokens_total\\{model="${model}",kind="output"\\} (\\d+)$`, 'm').exec(
        await (await app.fetch('/metrics')).text(),
      )?.[1] ?? 0,
    )
  const cancelled = async (model: string) =>
    (
      (await (await app.fetch(`/api/jobs?model_id=${model}&status=cancelled&kind=sync&limit=1`)).json()) as {
        jobs: { id: string }[]
      }
    ).jobs[0]?.id

  const routes = { chat: '/chat/completions', completion: '/completions' }
  test.each([
    ['chat', 'llama-server'],
    ['chat', 'vllm'],
    ['completion', 'llama-server'],
    ['completion', 'vllm'],
  ] as const)('%s of %s: the usage up to that point is billed', async (kind, model) => {
    const before = await cancelled(model)
    const start = await tokens(model)
    const said = 'one two three mode:stream,tokens=100000,rate=100'
    const leave = new AbortController()
    const sent = app
      .fetch(`/std/v1${routes[kind]}`, {
        body: {
          ...(kind === 'chat' ? chat(model, said) : { model, prompt: said }),
          stream: false,
          max_tokens: 100_000,
        },
        signal: leave.signal,
      })
      .catch(() => 'left')
    await expect.poll(async () => (await tokens(model)) - start).toBeGreaterThan(4)
    leave.abort()
    expect(await sent).toBe('left')
    await expect.poll(() => cancelled(model)).not.toBe(before)
    const { usage: used } = (await (await app.fetch(`/api/jobs/${await cancelled(model)}`)).json()) as {
      usage: Record<string, number>
    }
    expect(used.input_tokens).toBe(4)
    expect(used.output_tokens).toBeGreaterThan(4)
    expect(used.output_tokens).toBeLessThan(1000)
    // Every chunk was counted once.
    expect((await tokens(model)) - start).toBe(used.output_tokens)
  })
})

describe('a stream whose client disconnects', () => {
  const usedBy = async (model: string, mode: string) => {
    const leave = new AbortController()
    const response = await app.fetch('/std/v1/chat/completions', {
      body: chat(model, `one two three mode:${mode}`, { stream: true }),
      signal: leave.signal,
    })
    const id = response.headers.get('x-job-id')!
    const reader = response.body!.getReader()
    let text = ''
    while (!text.includes('token3')) text += new TextDecoder().decode((await reader.read()).value)
    leave.abort()
    const job = async () =>
      (await (await app.fetch(`/api/jobs/${id}`)).json()) as { status: string; usage: Record<string, number> }
    await expect.poll(async () => (await job()).status).toBe('cancelled')
    return (await job()).usage
  }

  test.each([
    ['llama-server, which reports the prompt length at the start', 'llama-server', 4],
    ['vllm, which reports it in every event', 'vllm', 4],
    ['an engine that reports it at the end: nothing is estimated', 'remote', 0],
  ])('%s', async (_what, model, prompt) => {
    const used = await usedBy(model, 'stream,tokens=100000,rate=100')
    expect(used.input_tokens).toBe(prompt)
    expect(used.output_tokens).toBeGreaterThanOrEqual(4)
    expect(used.output_tokens).toBeLessThan(1000)
  })
})
