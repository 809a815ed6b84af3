import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readGuides } from '../../../bin/guides/pages.ts'
import { sharedBody } from '../../../core/dialects/ollama/ollama-body.ts'
import { configKeys } from '../../../core/models/config-keys.ts'
import { Model } from '../../../core/models/model.ts'
import { backendNames } from '../../../gpu/engines/gguf/backend.ts'
import { presets } from '../../../gpu/presets/presets.ts'
import { startApp, type TestApp } from '../../_app.ts'

const built = existsSync(join(import.meta.dirname, '../../../dist/assets/docs/guides.json'))
const policy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

describe.skipIf(!built)('the guides', () => {
  let app: TestApp
  beforeAll(async () => void (app = await startApp()))
  afterAll(() => app[Symbol.asyncDispose]())
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const response = await app.fetch(path, { token: null, headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  test('are listed, each is a page, and none needs a token', async () => {
    const list = await ask('/docs/guides')
    expect([list.status, list.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const paths = new Set([...list.text.matchAll(/href="(\/docs\/guides\/[a-z-]+)"/g)].map(([, path]) => path!))
    expect(paths.size).toBeGreaterThan(5)
    for (const path of paths) {
      const { status, text, headers } = await ask(path)
      expect([path, status, headers.get('content-security-policy')]).toEqual([path, 200, policy])
      expect(text).toMatch(/<h1>[^<]+<\/h1>/)
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  test('load their styles from this server', async () => {
    const { status, headers, text } = await ask('/docs/style.css')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8'])
    expect(text).toContain('light-dark(')
    expect(text).not.toMatch(/https?:\/\/|@import/)
  })

  test('are linked with the configuration reference', async () => {
    const { status, text, headers } = await ask('/docs/configuration')
    expect([status, headers.get('content-security-policy')]).toEqual([200, policy])
    expect(text).toContain('<h3 id="limitsupload_size">')
  })

  test.each([
    ['/docs/guides/job', 'Did you mean /docs/guides/jobs?'],
    ['/docs/guides/nothing-like-it', 'There is no guide with this name. /docs/guides lists all guides.'],
    ['/docs/guides/..%2f..%2fpackage', 'There is no guide with this name.'],
    ['/docs/images/nothing.webp', 'The guides have no such picture.'],
    ['/docs/images/..%2fscalar.js', 'The guides have no such picture.'],
  ])('%s is 404, with a hint where to look', async (path, message) => {
    const { status, text } = await ask(path)
    expect(status).toBe(404)
    expect((JSON.parse(text) as { error: { message: string } }).error.message).toContain(message)
  })

  test('refuse subresource requests of other sites', async () => {
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect((await ask('/docs/guides/jobs', foreign)).text).toBe('')
    expect((await ask('/docs/guides/jobs', { ...foreign, 'sec-fetch-dest': 'document' })).text).toContain('<h1>')
  })
})

/** What the guides say is not offered: the first cell of a row, or the parts of a sentence. */
const denials = readGuides().flatMap(({ topic, body }) => {
  const text = body.replaceAll(/\s*\n(?!\n|\|)/g, ' ')
  const rows = [...text.matchAll(/^\| ([^|]+) \|(?:[^\n]*\|)? not offered \|/gm)].map(([, what]) => what!)
  const sentences = [...text.matchAll(/\bNot offered: ([^.]+)\./g)].flatMap(([, all]) => all!.split(/; /))
  const others =
    (text.match(/not offered/gi)?.length ?? 0) - (text.match(/\| not offered \||\bNot offered: /g)?.length ?? 0)
  return [...rows, ...sentences, ...Array.from({ length: others }, () => 'written in another form')].map(
    what => `${topic}: ${what}`,
  )
})

describe('what the guides say is not offered', () => {
  let app: TestApp
  beforeAll(async () => void (app = await startApp()))
  afterAll(() => app[Symbol.asyncDispose]())

  const refuses = (status: number, path: string, body?: object) => async () =>
    expect([path, (await app.fetch(path, body ? { body } : {})).status]).toEqual([path, status])
  const lacksSetting = (name: RegExp) => () => {
    const keys = configKeys().map(({ key }) => key)
    expect(keys.filter(key => name.test(key))).toEqual([])
  }
  const lacksMethod = (method: string) => async () => {
    const body = { jsonrpc: '2.0', id: 1, method, params: {} }
    const headers = { accept: 'application/json, text/event-stream' }
    const answer = (await (await app.fetch('/mcp', { body, headers })).json()) as object
    expect(answer).toMatchObject({ error: { code: -32_601 } })
  }
  const isNoModel = (entry: object) => () => expect(Model.safeParse({ id: 'a', ...entry }).success).toBe(false)
  const all =
    (...checks: (() => unknown)[]) =>
    async () => {
      for (const check of checks) await check()
    }

  /** Why each is not offered, and a request or setting that shows it. */
  const reasons: Record<string, [because: string, holds: () => unknown]> = {
    'coming-from-fal: realtime, streaming of models': [
      'models that make images and videos are jobs; the stream is that of their status',
      all(
        refuses(404, '/fal/run/demo/text-to-image/realtime', {}),
        refuses(404, '/fal/run/demo/text-to-image/stream', {}),
      ),
    ],
    'coming-from-litellm: providers with APIs of their own (Anthropic, Bedrock, Vertex)': [
      'a model elsewhere is one with an OpenAI-compatible API',
      () => expect(['anthropic', 'bedrock', 'vertex'].filter(name => presets.has(name))).toEqual([]),
    ],
    'coming-from-litellm: load balancing between servers': [
      'infer schedules the GPUs of its own machine',
      isNoModel({ engine: 'remote', url: ['http://a.example/v1', 'http://b.example/v1'] }),
    ],
    'coming-from-litellm: caching of the answers of chats': [
      'a caller of a chat expects a new answer; nodes of workflows say what they reuse',
      lacksSetting(/(answer|response|prompt)s?_?cache|^cache\b/),
    ],
    'coming-from-litellm: guardrails': [
      'a workflow can moderate; nothing stands between caller and model',
      lacksSetting(/guard|moderat/),
    ],
    'coming-from-litellm: callbacks to logging services': [
      'webhooks and metrics are for every service',
      lacksSetting(/callback|langfuse|sentry|otel/),
    ],
    'coming-from-ollama: `ollama push`': [
      'infer is no registry',
      refuses(400, '/ollama/api/push', { model: 'infer/tiny-chat' }),
    ],
    'coming-from-ollama: Windows and macOS': [
      'engines are confined by namespaces of Linux',
      () =>
        expect(readFileSync(join(import.meta.dirname, '../../../bin/target.ts'), 'utf8')).not.toMatch(/darwin|win32/),
    ],
    'coming-from-ollama: a registry to push to': [
      'models come from hubs',
      refuses(404, '/v2/library/model/manifests/latest'),
    ],
    'coming-from-openai: assistants, threads, vector stores, fine-tuning': [
      'responses and workflows took their place; infer trains nothing',
      all(
        ...['assistants', 'threads', 'vector_stores', 'fine_tuning/jobs'].map(name =>
          refuses(404, `/std/v1/${name}`, {}),
        ),
      ),
    ],
    'gpus-and-memory: ROCm, Metal and SYCL for the built-in engine': [
      'Vulkan serves the cards of AMD and Intel',
      () => expect(backendNames.filter(name => /hip|rocm|metal|sycl/.test(name))).toEqual([]),
    ],
    'mcp: sampling, prompts, OAuth': [
      'infer is the model; programs with a token need no login',
      all(lacksMethod('prompts/list'), lacksMethod('sampling/createMessage'), () =>
        refuses(404, '/.well-known/oauth-protected-resource')(),
      ),
    ],
  }

  test('each has a reason here, and each reason its guide', () => {
    expect(denials.toSorted()).toEqual(Object.keys(reasons).toSorted())
  })

  test.each(Object.keys(reasons))('%s', async what => {
    const [because, holds] = reasons[what]!
    expect(because).not.toBe('')
    await holds()
  })

  test('what is offered passes none of these checks', async () => {
    await expect(refuses(404, '/std/v1/batches')()).rejects.toThrow()
    expect(lacksSetting(/replicas/)).toThrow()
    await expect(lacksMethod('tools/list')()).rejects.toThrow()
    expect(isNoModel({ engine: 'remote', url: 'http://a.example/v1' })).toThrow()
  })
})

test('the options of Ollama that count are those that its guide lists', () => {
  const { body } = readGuides().find(({ topic }) => topic === 'coming-from-ollama')!
  const [, list] = /Of `options`,([^]*?) count\./.exec(body) ?? []
  const read = new Set<string>()
  const options = new Proxy({}, { get: (_, name) => void read.add(String(name)) })
  sharedBody({ model: 'm', messages: [], options })
  expect([...list!.matchAll(/`(\w+)`/g)].map(([, name]) => name!).toSorted()).toEqual([...read].toSorted())
})
