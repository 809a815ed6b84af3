import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, type Seen, well } from '../../_scripted-engine.ts'

/** A synchronous call is a job as well: it can be read and cancelled like one, while it runs and afterwards. */
let app: TestApp
let engine: ScriptedEngine
/** Streams that have begun and are held open, by their message. */
const held = new Map<string, ServerResponse>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = saidTo(seen)
    if (said.startsWith('fail')) return badly(response, 400, 'not like this')
    if (!said.startsWith('hold')) return well(seen, response)
    held.set(said, response)
    if (!seen.body.stream) return
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(frame({ role: 'assistant', content: 'one' }))
    response.write(frame({ content: ' two' }))
  })
  app = await startApp({ models: [engine.model('far'), engine.model('narrow', { concurrency: 1 })] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const saidTo = ({ body }: Seen) => String(body.messages?.[0]?.content ?? body.input)
const frame = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'far', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const ask = (
  said: string,
  { stream = false, model = 'far', signal }: { stream?: boolean; model?: string; signal?: AbortSignal } = {},
) =>
  app.fetch('/std/v1/chat/completions', {
    body: { model, stream, messages: [{ role: 'user', content: said }] },
    ...(signal ? { signal } : {}),
  })
const of = async (response: Response) => ({
  status: response.status,
  body: (await response.json()) as Record<string, unknown>,
})
const look = async (id: string, token?: string) => of(await app.fetch(`/api/jobs/${id}`, token ? { token } : {}))
const cancel = async (id: string, token?: string) =>
  of(await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST', ...(token ? { token } : {}) }))
const idOf = (response: Response) => response.headers.get('x-job-id')!

test('a call is readable directly after its end, with its usage and without its texts', async () => {
  for (let time = 0; time < 20; time++) {
    const response = await ask('Hello')
    await response.text()
    const { status, body } = await look(idOf(response))
    expect([status, body]).toEqual([
      200,
      {
        id: idOf(response),
        object: 'job',
        queue_id: null,
        organization_id: app.organizationId,
        kind: 'sync',
        task: 'std/chat-completion',
        model_id: 'far',
        requested_model: null,
        traceparent: null,
        fallback_reason: null,
        slug: null,
        status: 'completed',
        priority: 0,
        queue_position: null,
        progress: 1,
        previews: 0,
        eta_seconds: null,
        waiting_for: null,
        webhook_url: null,
        inputs: null,
        result: null,
        error: null,
        attempts: 1,
        max_attempts: expect.any(Number),
        worker_id: expect.stringMatching(/^wkr_/),
        created_at: expect.any(Number),
        updated_at: expect.any(Number),
        queued_at: expect.any(Number),
        started_at: expect.any(Number),
        finished_at: expect.any(Number),
        expires_at: null,
        outputs_reused: false,
        metrics: {
          queue_ms: expect.any(Number),
          reference_queue_ms: (body.metrics as { reference_queue_ms: number | null }).reference_queue_ms,
          time_to_first_token_ms: null,
          load_ms: null,
          run_ms: expect.any(Number),
        },
        usage: {
          input_tokens: expect.any(Number),
          cached_tokens: 0,
          output_tokens: expect.any(Number),
          reasoning_tokens: 0,
          images: 0,
          video_seconds: 0,
          audio_seconds: 0,
          characters: 0,
          documents: 0,
          gpu_ms: expect.any(Number),
          energy_joules: null,
        },
        cost: 0,
        token_id: expect.stringMatching(/^tok_/),
        metadata: null,
      },
    ])
    expect((body.usage as { output_tokens: number }).output_tokens).toBeGreaterThan(0)
    expect(JSON.stringify(body)).not.toContain('Hello')
  }
})

test('two reads are equal: from memory, and after it is written', async () => {
  await using fresh = await startApp({ models: [engine.model('far')] })
  const response = await fresh.fetch('/std/v1/embeddings', { body: { model: 'far', input: 'a' } })
  const record = async () => of(await fresh.fetch(`/api/jobs/${idOf(response)}`))
  const first = await record()
  await expect
    .poll(async () => (await (await fresh.fetch('/metrics')).text()).includes('\ninfer_ledger_rows_total 1\n'))
    .toBe(true)
  expect([first.status, await record()]).toEqual([200, first])
})

test('a rejected request has no record: no work was done for it', async () => {
  await using fresh = await startApp({ models: [engine.model('narrow', { concurrency: 1, max_queue: 1 })] })
  const chat = (said: string) =>
    fresh.fetch('/std/v1/chat/completions', { body: { model: 'narrow', messages: [{ role: 'user', content: said }] } })
  const first = chat('hold the only slot')
  await expect.poll(() => held.has('hold the only slot')).toBe(true)
  const met: (string | null)[] = []
  const others = Array.from({ length: 6 }, async () => {
    const { status, headers } = await chat('Hello')
    met.push(`${status} ${headers.has('x-job-id')}`)
  })
  await expect.poll(() => met).toEqual(Array.from({ length: 5 }, () => '429 false'))
  well({ path: '/v1/chat/completions', body: { messages: [] } } as unknown as Seen, held.get('hold the only slot')!)
  await Promise.all([first, ...others])
  expect([(await first).status, met.at(-1)]).toEqual([200, '200 true'])
  await expect
    .poll(async () => /^infer_ledger_rows_total (\d+)$/m.exec(await (await fresh.fetch('/metrics')).text())?.[1])
    .toBe('2')
})

test('a failed call gives the reason', async () => {
  const response = await ask('fail')
  expect(response.status).toBe(400)
  expect((await look(idOf(response))).body).toMatchObject({
    status: 'failed',
    error: { code: 'invalid_value', retryable: false, attempt: 1 },
    usage: { input_tokens: 0, output_tokens: 0 },
  })
})

test('a running call is processing, for its own organization only', async () => {
  const response = await ask('hold and look', { stream: true })
  const id = idOf(response)
  expect((await look(id)).body).toMatchObject({
    id,
    kind: 'sync',
    status: 'processing',
    inputs: null,
    usage: null,
    finished_at: null,
    worker_id: expect.stringMatching(/^wkr_/),
  })
  const other = await makeOrganization(app)
  for (const foreign of [await look(id, other.secret), await cancel(id, other.secret)]) expect(foreign.status).toBe(404)
  held.get('hold and look')!.write(frame({}, 'stop'))
  held.get('hold and look')!.end('data: [DONE]\n\n')
  expect(await response.text()).toContain('[DONE]')
  const { body } = await look(id)
  expect(body).toMatchObject({ status: 'completed', finished_at: expect.any(Number) })
  const { time_to_first_token_ms, queue_ms, run_ms } = body.metrics as Record<string, number>
  // Times of the clock, in whole milliseconds.
  expect(time_to_first_token_ms).toBeLessThanOrEqual(queue_ms! + run_ms! + 2)
  expect(time_to_first_token_ms).toBeGreaterThanOrEqual(0)
})

test('cancelled during a stream: the engine request is aborted, the caller gets an error, and delivered tokens are counted', async () => {
  const response = await ask('hold and cancel', { stream: true })
  const id = idOf(response)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = (await reader.read()).value!
  const cancelled = await cancel(id)
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled'])
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    text += value
  }
  expect(text).toContain('"code":"cancelled"')
  expect(text).not.toContain('[DONE]')
  await engine.until(seen => seen.find(one => saidTo(one) === 'hold and cancel')!.goneAt !== undefined)
  expect((await look(id)).body).toMatchObject({ status: 'cancelled', usage: { input_tokens: 0, output_tokens: 2 } })
  expect((await cancel(id)).status).toBe(200)
})

test.each([
  ['that ended', 'Hello', 'completed'],
  ['that failed', 'fail', 'failed'],
])('a call %s cannot be cancelled', async (_, said, status) => {
  const response = await ask(said)
  await response.text()
  const late = await cancel(idOf(response))
  expect([late.status, (late.body.error as { code: string }).code]).toEqual([409, 'job_already_finished'])
  expect((await look(idOf(response))).body.status).toBe(status)
})

test('a hundred streams cancelled while they end: each has one end, which matches the answer to the cancel', async () => {
  const one = async (at: number) => {
    const said = `hold race ${at}`
    const response = await ask(said, { stream: true })
    const id = idOf(response)
    const reading = response.text().catch(() => '')
    const ending = new Promise<void>(resolve =>
      setTimeout(() => {
        held.get(said)!.write(frame({}, 'stop'))
        held.get(said)!.end('data: [DONE]\n\n')
        resolve()
      }, Math.random() * 10),
    )
    await new Promise(resolve => setTimeout(resolve, Math.random() * 10))
    const { status, body } = await cancel(id)
    await ending
    const text = await reading
    const cancelled = status === 200
    expect([200, 409]).toContain(status)
    if (cancelled) expect(body.status).toBe('cancelled')
    expect(text.includes('[DONE]')).toBe(!cancelled)
    expect((await look(id)).body.status).toBe(cancelled ? 'cancelled' : 'completed')
    return cancelled
  }
  let cancelled = 0
  for (let from = 0; from < 100; from += 20)
    for (const done of await Promise.all(Array.from({ length: 20 }, (_, at) => one(from + at))))
      cancelled += Number(done)
  process.stdout.write(`100 streams cancelled at their end: ${cancelled} in time\n`)
})

test('an unknown id: 404', async () => {
  const response = await ask('hold beside', { stream: true })
  expect((await look(newId('job'))).status).toBe(404)
  await response.body!.cancel()
  await expect.poll(async () => (await look(idOf(response))).body.status).toBe('cancelled')
})
