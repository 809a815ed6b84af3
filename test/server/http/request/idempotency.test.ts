import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { openApp } from '../../../../cli/server/app.ts'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
const held = new Map<string, ServerResponse>()
const times = new Map<string, number>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input ?? seen.body.messages?.[0]?.content)
    times.set(said, (times.get(said) ?? 0) + 1)
    if (said.startsWith('hold')) return void held.set(said, response)
    if (said.startsWith('400')) return badly(response, 400, 'not like this')
    if (said.startsWith('late') && times.get(said) === 1) return badly(response, 422, 'not yet')
    if (said.startsWith('broken') && times.get(said)! <= 3) return badly(response, 500, 'on fire')
    if (said.startsWith('long')) {
      const content = 'x'.repeat(2 << 20)
      const body = { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    well(seen, response)
  })
  app = await startApp({ models: [engine.model('far'), engine.model('narrow', { concurrency: 1, max_queue: 1 })] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

async function send(
  path: string,
  body: object,
  key: string,
  { token, signal }: { token?: string; signal?: AbortSignal } = {},
) {
  const response = await app.fetch(path, {
    body,
    headers: { 'idempotency-key': key },
    ...(token === undefined ? {} : { token }),
    ...(signal ? { signal } : {}),
  })
  const text = await response.text()
  const replayed = response.headers.get('idempotent-replayed')
  return {
    status: response.status,
    headers: response.headers,
    replayed,
    text,
    jobId: response.headers.get('x-job-id'),
    error: text.startsWith('{"error"') ? (JSON.parse(text) as { error: Record<string, unknown> }).error : undefined,
  }
}
const embed = (input: string, key: string, more: Parameters<typeof send>[3] = {}) =>
  send('/std/v1/embeddings', { model: 'far', input }, key, more)
const chat = (content: string, key: string, more: object = {}) =>
  send('/std/v1/chat/completions', { model: 'far', messages: [{ role: 'user', content }], ...more }, key)
const newKey = () => newId('req')

describe('a repeated synchronous request', () => {
  test('gets the first answer, byte for byte, and nothing is computed', async () => {
    const key = newKey()
    const first = await chat('Hello', key)
    expect([first.status, first.replayed]).toEqual([200, null])
    const asked = engine.seen.length
    for (let time = 0; time < 3; time++) {
      const again = await send(
        '/v1/chat/completions',
        { messages: [{ content: 'Hello', role: 'user' }], model: 'far' },
        key,
      )
      expect([again.status, again.replayed, again.text, again.jobId]).toEqual([200, 'true', first.text, first.jobId])
      expect(again.headers.get('content-type')).toBe('application/json')
    }
    expect(engine.seen.length).toBe(asked)
  })

  test('with another body: 422', async () => {
    const key = newKey()
    await embed('one', key)
    const other = await embed('two', key)
    expect([other.status, other.error?.code, times.has('two')]).toEqual([422, 'idempotency_key_reused', false])
  })

  test('to another endpoint, or of another organization, is another request', async () => {
    const key = newKey()
    const first = await embed('mine', key)
    const other = await makeOrganization(app)
    for (const again of [
      await chat('mine', key),
      await embed('mine', key, { token: other.secret }),
      await send('/std/v1/score', { model: 'far', text_1: 'a', text_2: 'b' }, key),
    ])
      expect([again.status, again.replayed, again.jobId === first.jobId]).toEqual([200, null, false])
  })

  test('while the first one is running: 409, and when to retry', async () => {
    const key = newKey()
    const first = embed('hold one', key)
    await engine.until(() => held.has('hold one'))
    let running: unknown
    for (let time = 0; time < 2; time++) {
      const again = await embed('hold one', key)
      expect([again.status, again.error?.code]).toEqual([409, 'idempotency_key_in_use'])
      expect([again.headers.get('retry-after'), again.headers.get('x-should-retry')]).toEqual(['1', 'true'])
      running = again.error?.job_id
      expect((await app.fetch(`/api/jobs/${String(running)}`)).status).toBe(200)
    }
    expect((await embed('another', key)).error?.code).toBe('idempotency_key_reused')
    well({ path: '/v1/embeddings', body: { input: 'hold one' } } as never, held.get('hold one')!)
    const { status, text } = await first
    expect(status).toBe(200)
    const after = await embed('hold one', key)
    expect(after.jobId).toBe(running)
    expect([after.status, after.replayed, after.text]).toEqual([200, 'true', text])
    expect(times.get('hold one')).toBe(1)
  })

  test.each([
    ['/anthropic/v1/messages', { model: 'far', max_tokens: 9 }],
    ['/ollama/api/chat', { model: 'far', stream: false }],
    ['/std/v2/chat', { model: 'far' }],
  ])('while the first one is running: the id of its job, at %s', async (path, body) => {
    const key = newKey()
    const said = `hold ${path}`
    const request = { ...body, messages: [{ role: 'user', content: said }] }
    const first = send(path, request, key)
    await engine.until(() => held.has(said))
    const again = await send(path, request, key)
    const answer = JSON.parse(again.text) as { job_id?: string; error: { job_id?: string } }
    const id = answer.job_id ?? answer.error.job_id
    expect([again.status, (await app.fetch(`/api/jobs/${id}`)).status]).toEqual([409, 200])
    well({ path: '/v1/chat/completions', body: {} } as never, held.get(said)!)
    expect((await first).jobId).toBe(id)
  })

  test('a stream whose sender went away before its head is found by its key', async () => {
    const key = newKey()
    const body = { model: 'far', stream: true, messages: [{ role: 'user', content: 'hold a stream' }] }
    const leave = new AbortController()
    const headers = { 'idempotency-key': key, prefer: 'resume=60' }
    const path = '/std/v1/chat/completions'
    const gone = app.fetch(path, { body, headers, signal: leave.signal }).catch(() => undefined)
    await engine.until(() => held.has('hold a stream'))
    leave.abort()
    await gone
    const again = await send(path, body, key)
    expect([again.status, again.error?.code]).toEqual([409, 'idempotency_key_in_use'])
    const stream = app.fetch(`/api/jobs/${String(again.error?.job_id)}/stream`)
    well({ path: '/v1/chat/completions', body } as never, held.get('hold a stream')!)
    expect(await (await stream).text()).toContain('[DONE]')
    expect(times.get('hold a stream')).toBe(1)
  })

  test('after a refusal of the engine: the same refusal', async () => {
    const key = newKey()
    const first = await embed('late', key)
    const again = await embed('late', key)
    expect([first.status, again.status, again.replayed, again.text]).toEqual([400, 400, 'true', first.text])
    expect(times.get('late')).toBe(1)
  })

  test.each<[string, () => Promise<{ status: number; key: string; resend: () => ReturnType<typeof embed> }>]>([
    [
      'the server was at fault',
      async () => {
        const key = newKey()
        const { status } = await embed('broken', key)
        return { status, key, resend: () => embed('broken', key) }
      },
    ],
    [
      'it was malformed, and is put right',
      async () => {
        const key = newKey()
        const { status } = await send('/std/v1/embeddings', { model: 'far' }, key)
        return { status, key, resend: () => embed('put right', key) }
      },
    ],
    [
      'its sender went away',
      async () => {
        const key = newKey()
        const leave = new AbortController()
        const gone = embed('hold and leave', key, { signal: leave.signal }).catch(() => ({ status: 499 }))
        await engine.until(() => held.has('hold and leave'))
        leave.abort()
        const { status } = await gone
        await engine.until(seen => seen.find(({ body }) => body.input === 'hold and leave')!.goneAt !== undefined)
        return {
          status,
          key,
          resend: async () => {
            const again = embed('hold and leave', key)
            await engine.until(() => times.get('hold and leave') === 2)
            well({ path: '/v1/embeddings', body: { input: 'x' } } as never, held.get('hold and leave')!)
            return again
          },
        }
      },
    ],
  ])('after %s: it runs again', async (_, begin) => {
    const { status, resend } = await begin()
    expect(status).not.toBe(200)
    // The key is free once the server has closed the first connection.
    await expect
      .poll(async () => {
        const { status, replayed } = await resend()
        return [status, replayed]
      })
      .toEqual([200, null])
  })

  test('of a stream: 409 with the id of its job', async () => {
    const key = newKey()
    const first = await chat('Hello', key, { stream: true })
    expect([first.status, first.text.includes('[DONE]')]).toEqual([200, true])
    // The job is recorded once it has been streamed.
    await expect.poll(async () => (await chat('Hello', key, { stream: true })).error?.code).toBe('conflict')
    const again = await chat('Hello', key, { stream: true })
    expect([again.status, again.error?.code, again.error?.job_id]).toEqual([409, 'conflict', first.jobId])
    expect(again.headers.get('x-should-retry')).toBe('false')
    expect((await app.fetch(`/api/jobs/${first.jobId}`)).status).toBe(200)
  })

  test('of an answer of megabytes: 409 with the id of its job', async () => {
    const key = newKey()
    const first = await chat('long', key)
    expect([first.status, first.text.length > 2 << 20]).toEqual([200, true])
    const again = await chat('long', key)
    expect([again.status, again.error?.code, again.error?.job_id]).toEqual([409, 'conflict', first.jobId])
  })

  test('with a large body, which is parsed in a thread', async () => {
    const key = newKey()
    const input = 'y'.repeat(200_000)
    const first = await embed(input, key)
    const again = await embed(input, key)
    expect([first.status, again.status, again.replayed, again.text === first.text]).toEqual([200, 200, 'true', true])
    expect((await embed(`${input}z`, key)).status).toBe(422)
  })

  test('a key may have 255 characters', async () => {
    expect((await embed('a', 'x'.repeat(255))).status).toBe(200)
  })

  test.each(['x'.repeat(256), 'ü', 'a b'])('%j is not a valid key', async key => {
    const refused = await embed('a', Buffer.from(key).toString('latin1'))
    expect([refused.status, refused.error?.param]).toEqual([400, 'Idempotency-Key'])
  })
})

test('100 at once with each of 20 keys create 20 jobs, and each of those runs once', async () => {
  const before = await jobs()
  const keys = Array.from({ length: 20 }, newKey)
  const ids = new Map<string, Set<string>>()
  let replays = 0
  const one = async (key: string) => {
    const body = { task: 'std/embeddings', model_id: 'far', inputs: { input: `race ${key}` } }
    const { status, text, replayed } = await send('/api/jobs', body, key)
    expect(status, text).toBe(202)
    if (replayed) replays++
    ids.set(key, (ids.get(key) ?? new Set()).add((JSON.parse(text) as { id: string }).id))
  }
  const from = performance.now()
  // Keys alternate, so that the requests of one key are both concurrent and spread over time.
  for (let at = 0; at < keys.length; at += 4)
    await Promise.all(keys.slice(at, at + 4).flatMap(key => Array.from({ length: 50 }, () => one(key))))
  for (let at = 0; at < keys.length; at += 4)
    await Promise.all(keys.slice(at, at + 4).flatMap(key => Array.from({ length: 50 }, () => one(key))))
  process.stdout.write(`${100 * keys.length} keyed submits in ${((performance.now() - from) / 1000).toFixed(1)} s\n`)
  expect([...ids.values()].map(set => set.size)).toEqual(keys.map(() => 1))
  expect(replays).toBe(100 * keys.length - keys.length)
  for (const set of ids.values()) for (const id of set) await app.fetch(`/api/jobs/${id}?wait=60`)
  expect((await jobs()) - before).toBe(keys.length)
  for (const key of keys) expect(times.get(`race ${key}`)).toBe(1)
})

test('the key of a job that ran and was deleted is refused; that of one that never began creates a new one', async () => {
  const job = (input: string, more: object = {}) => ({
    task: 'std/embeddings',
    model_id: 'far',
    inputs: { input },
    ...more,
  })
  const idOf = (text: string) => (JSON.parse(text) as { id: string }).id
  const [ran, withdrawn] = [newKey(), newKey()]
  const first = await send('/api/jobs', job('ran'), ran)
  await app.fetch(`/api/jobs/${idOf(first.text)}?wait=30`)
  await app.fetch(`/api/jobs/${idOf(first.text)}`, { method: 'DELETE' })
  const again = await send('/api/jobs', job('ran'), ran)
  expect([again.status, again.error?.code, times.get('ran')]).toEqual([410, 'output_expired', 1])

  const later = job('withdrawn', { not_before: Math.floor(Date.now() / 1000) + 3600 })
  const waiting = idOf((await send('/api/jobs', later, withdrawn)).text)
  await app.fetch(`/api/jobs/${waiting}/cancel`, { method: 'POST' })
  expect((await send('/api/jobs', later, withdrawn)).replayed).toBe('true')
  await app.fetch(`/api/jobs/${waiting}`, { method: 'DELETE' })
  const anew = await send('/api/jobs', later, withdrawn)
  expect([anew.status, anew.replayed, idOf(anew.text) === waiting]).toEqual([202, null, false])
  expect((await send('/api/jobs', later, withdrawn)).text).toBe(anew.text)
})

async function jobs(): Promise<number> {
  const text = await (await app.fetch('/metrics')).text()
  return [...text.matchAll(/^infer_jobs\{state="\w+"\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}

test('100 synchronous requests at once: one is computed, and all answers are the same', async () => {
  const key = newKey()
  const answers = await Promise.all(Array.from({ length: 100 }, () => embed('together', key)))
  const good = answers.filter(({ status }) => status === 200)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(good.length === 100 ? [200] : [200, 409]))
  expect(new Set(good.map(({ text }) => text)).size).toBe(1)
  expect([times.get('together'), good.filter(({ replayed }) => replayed === null).length]).toEqual([1, 1])
})

describe('an answer with a secret', () => {
  const tokens = () => `/api/organizations/${app.organizationId}/tokens`
  const count = async () =>
    ((await (await app.fetch(`${tokens()}?limit=100`)).json()) as { tokens: unknown[] }).tokens.length

  test('is computed once under one key, and its secret is nowhere on the disk', async () => {
    const key = newKey()
    const before = await count()
    const first = await send(tokens(), { name: 'keyed' }, key)
    expect(first.status).toBe(201)
    const { token, secret } = JSON.parse(first.text) as { token: { id: string }; secret: string }
    const again = await send(tokens(), { name: 'keyed' }, key)
    expect([again.status, again.error?.code, again.error?.token_id]).toEqual([409, 'conflict', token.id])
    expect(again.text).not.toContain(secret)
    expect((await send(tokens(), { name: 'other' }, key)).status).toBe(422)
    expect(await count()).toBe(before + 1)
    for (const file of ['infer.db', 'infer.db-wal'])
      expect(readFileSync(join(app.dataDir, file)).includes(secret)).toBe(false)
  })

  test('of a rotation is computed once under one key', async () => {
    const made = await send(tokens(), { name: 'to rotate' }, newKey())
    const { token } = JSON.parse(made.text) as { token: { id: string } }
    const key = newKey()
    const path = `${tokens()}/${token.id}/rotate`
    const first = await send(path, { overlap_seconds: 3600 }, key)
    const next = (JSON.parse(first.text) as { token: { id: string } }).token.id
    const again = await send(path, { overlap_seconds: 3600 }, key)
    expect([first.status, again.status, again.error?.token_id]).toEqual([200, 409, next])
  })

  test('that failed does not use up the key', async () => {
    const key = newKey()
    expect((await send(tokens(), { name: '' }, key)).status).toBe(400)
    expect((await send(tokens(), { name: 'named' }, key)).status).toBe(201)
  })
})

test('keys are kept over a restart', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-test-'))
  const configPath = join(dataDir, 'infer.yaml')
  const limits = { min_free_disk: 0, ballast: 0 }
  writeFileSync(configPath, stringify({ models: [engine.model('far')], limits }))
  const log = openLog('error')
  const start = () => openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  try {
    const sent = async (url: string, path: string, body: object, key: string) => {
      const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(body),
      })
      return [response.status, response.headers.get('idempotent-replayed'), await response.text()] as const
    }
    const requests: [string, object, string][] = [
      ['/std/v1/embeddings', { model: 'far', input: 'kept' }, newKey()],
      ['/std/v1/chat/completions', { model: 'far', messages: [{ role: 'user', content: 'kept too' }] }, newKey()],
      ['/api/jobs', { task: 'std/embeddings', model_id: 'far', inputs: { input: 'a job' } }, newKey()],
    ]
    const first = await start()
    const before = []
    for (const request of requests) before.push(await sent(first.url, ...request))
    await first.close()
    const second = await start()
    try {
      const asked = engine.seen.length
      for (const [at, request] of requests.entries()) {
        const [status, replayed, text] = await sent(second.url, ...request)
        expect([status, replayed]).toEqual([before[at]![0], 'true'])
        const [was, is] = [before[at]![2], text].map(one => ({ ...(JSON.parse(one) as object), status: undefined }))
        expect(is).toEqual(was)
      }
      expect(engine.seen.slice(asked).filter(({ body }) => body.input !== 'a job')).toEqual([])
    } finally {
      await second.close()
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

test('a stored answer is returned again, however full the queue is', async () => {
  const embed = (input: string, key: string) => send('/std/v1/embeddings', { model: 'narrow', input }, key)
  const first = await embed('full', 'full')
  expect(first).toMatchObject({ status: 200, replayed: null })
  const busy = embed('hold-full', 'hold-full')
  await expect.poll(() => held.has('hold-full')).toBe(true)
  const waiting = embed('waits', 'waits')
  await expect.poll(async () => (await embed('one more', 'one-more')).status).toBe(429)
  expect(await embed('full', 'full')).toMatchObject({ status: 200, replayed: 'true', text: first.text })
  well({ path: '/v1/embeddings', body: { model: 'narrow', input: 'hold-full' } } as never, held.get('hold-full')!)
  expect((await busy).status).toBe(200)
  expect((await waiting).status).toBe(200)
})
