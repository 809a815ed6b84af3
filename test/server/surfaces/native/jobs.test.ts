import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

interface Job {
  id: string
  queue_id: string | null
  status: string
  kind: string
  inputs: unknown
  result: { data: { embedding: number[] }[] } & Record<string, unknown>
  error: { code: string; message: string; type: string; retryable: boolean; attempt: number; param: string } | null
  attempts: number
  usage: { input_tokens: number; output_tokens: number } | null
  created_at: number
  started_at: number | null
  finished_at: number | null
  worker_id: string | null
  metrics: { queue_ms: number | null; reference_queue_ms: number | null; run_ms: number | null }
}

let app: TestApp
/**
 * Answers as its input requests: `hold` never, `500` always with this status, `400` likewise, `late-2` normally from
 * the third time on.
 */
let engine: ScriptedEngine
const times = new Map<string, number>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input)
    const time = (times.get(said) ?? 0) + 1
    times.set(said, time)
    if (said.startsWith('hold')) return
    if (said.startsWith('500')) return badly(response, 500, 'the tensor is on fire')
    if (said.startsWith('400')) return badly(response, 400, 'I do not like this text')
    const late = /^late-(\d)/.exec(said)
    if (late && time <= Number(late[1])) return badly(response, 500, 'not yet')
    well(seen, response)
  })
  app = await startApp({
    models: [
      fakeModel('fake'),
      engine.model('far'),
      engine.model('narrow', { concurrency: 1 }),
      fakeModel('words', [], { tasks: ['std/chat-completion'], features: [] }),
      fakeModel('off', [], { enabled: false }),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await app.fetch(path, { method, body, headers })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Job }
}
const jobRequest = (input: string, more: object = {}) => ({
  task: 'std/embeddings',
  model_id: 'far',
  inputs: { input },
  ...more,
})
async function submit(input: string, more: object = {}): Promise<string> {
  const made = await ask('POST', '/api/jobs', jobRequest(input, more))
  expect(made.status, made.text).toBe(202)
  return made.body.id
}
const look = async (id: string, query = '') => (await ask('GET', `/api/jobs/${id}${query}`)).body
const end = (id: string) => look(id, '?wait=40')
const cancel = (id: string) => ask('POST', `/api/jobs/${id}/cancel`)

async function metric(name: string): Promise<number> {
  const text = await (await app.fetch('/metrics')).text()
  return Number(
    text
      .split('\n')
      .find(line => line.startsWith(`${name} `))!
      .split(' ')[1],
  )
}
/** From one read: between two reads a job that changes its state would count twice or not at all. */
const jobsInAll = async () => {
  const text = await (await app.fetch('/metrics')).text()
  return [...text.matchAll(/^infer_jobs\{state="\w+"\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}

describe('a job', () => {
  test.each<[string, object, (result: Record<string, unknown>) => unknown, unknown]>([
    ['std/embeddings', { input: ['a', 'b'] }, ({ data }) => (data as unknown[]).length, 2],
    ['std/rerank', { query: 'a', documents: ['b', 'a'] }, ({ data }) => (data as { index: number }[])[0]!.index, 1],
    ['std/score', { text_1: 'a', text_2: ['a', 'b'] }, ({ data }) => (data as unknown[]).length, 2],
    [
      'std/chat-completion',
      { messages: [{ role: 'user', content: 'Hello' }], stream: true },
      ({ object }) => object,
      'chat.completion',
    ],
  ])('of %s is acknowledged with its ids, runs, and keeps its result', async (task, inputs, of, expected) => {
    const before = Math.floor(Date.now() / 1000)
    const made = await ask('POST', '/api/jobs', {
      task,
      model_id: 'fake',
      inputs,
      priority: 'high',
      metadata: { ref: '42' },
    })
    expect([made.status, made.body]).toEqual([
      202,
      {
        id: expect.stringMatching(/^job_[0-9A-Z]{26}$/),
        queue_id: expect.stringMatching(/^q_[0-9A-Z]{26}$/),
        status: 'pending',
      },
    ])
    expect(Object.keys(made.body)[0]).toBe('id')
    expect(made.headers.get('x-job-id')).toBe(made.body.id)
    const job = await end(made.body.id)
    const { stream: _, ...kept } = inputs as Record<string, unknown>
    expect(job).toEqual({
      id: made.body.id,
      object: 'job',
      queue_id: made.body.queue_id,
      organization_id: app.organizationId,
      kind: 'async',
      task,
      model_id: 'fake',
      requested_model: null,
      fallback_reason: null,
      traceparent: null,
      slug: null,
      status: 'completed',
      priority: 10,
      queue_position: null,
      progress: 1,
      previews: 0,
      eta_seconds: null,
      waiting_for: null,
      inputs: { ...kept, model: 'fake' },
      result: expect.anything(),
      error: null,
      attempts: 1,
      max_attempts: 3,
      worker_id: expect.stringMatching(/^wkr_/),
      created_at: expect.any(Number),
      updated_at: expect.any(Number),
      queued_at: job.created_at,
      started_at: expect.any(Number),
      finished_at: expect.any(Number),
      expires_at: job.finished_at! + 7 * 86_400,
      metrics: {
        queue_ms: expect.any(Number),
        reference_queue_ms: job.metrics.reference_queue_ms,
        time_to_first_token_ms: null,
        load_ms: null,
        run_ms: expect.any(Number),
      },
      usage: expect.objectContaining({
        input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
        gpu_ms: expect.any(Number),
        energy_joules: null,
      }),
      cost: 0,
      token_id: expect.stringMatching(/^tok_/),
      outputs_reused: false,
      webhook_url: null,
      metadata: { ref: '42' },
    })
    expect(of(job.result)).toEqual(expected)
    expect(job.created_at).toBeGreaterThanOrEqual(before)
    expect(job.started_at!).toBeGreaterThanOrEqual(job.created_at)
    expect(job.finished_at!).toBeGreaterThanOrEqual(job.started_at!)
  })

  test.each<[string, object]>([
    ['model and input', { model: 'far', input: { input: 'a' } }],
    ['model and payload', { model: 'far', payload: { input: 'a' } }],
  ])('also accepts %s', async (_, fields) => {
    const made = await ask('POST', '/api/jobs', { task: 'std/embeddings', ...fields })
    expect(made.status).toBe(202)
    expect((await end(made.body.id)).status).toBe('completed')
  })

  test.each(['inputs', 'input', 'payload'])(
    'whose %s are large is parsed in a thread, with the same result',
    async name => {
      const input = Array.from({ length: 500 }, (_, at) => `${at} ${'x'.repeat(200)}`)
      const made = await ask('POST', '/api/jobs', {
        task: 'std/embeddings',
        model_id: 'far',
        [name]: { input, model: 'another', stream: true, dimensions: null },
        metadata: { ref: 'large' },
      })
      expect(made.status, made.text).toBe(202)
      const job = await end(made.body.id)
      expect([job.status, job.result.data.length]).toEqual(['completed', 500])
      expect(job.inputs).toEqual({ input, dimensions: null, model: 'far' })
      const wrong = await ask('POST', '/api/jobs', {
        ...jobRequest('a'),
        inputs: undefined,
        [name]: { input: [...input, 5] },
      })
      expect([wrong.status, wrong.body.error!.param]).toEqual([400, expect.stringContaining(`${name}.input`)])
      const none = await ask('POST', '/api/jobs', { ...jobRequest('a'), inputs: undefined, [name]: input })
      expect([none.status, none.body.error!.param]).toEqual([400, name])
    },
  )

  test.each([
    ['webhook_url', 'no address', 'no address', undefined],
    ['webhook_events', 'job.complete', 'https://example.com/hook', ['job.complete']],
    ['webhook_events', 'an event of executions', 'https://example.com/hook', ['workflow_execution.completed']],
    ['webhook_events', 'no URL', undefined, ['job.completed']],
  ])('with a %s that has %s is refused by name', async (param, _, webhook_url, webhook_events) => {
    const fields = { task: 'std/embeddings', model_id: 'far', inputs: { input: 'a' } }
    const { status, body } = await ask('POST', '/api/jobs', { ...fields, webhook_url, webhook_events })
    expect([status, body.error]).toMatchObject([400, { code: 'invalid_value', param }])
  })

  test.each<[unknown, number]>([
    ['low', -10],
    ['normal', 0],
    [-100, -100],
    [undefined, 0],
  ])('of priority %s has %i', async (priority, expected) => {
    expect(await look(await submit('a', { priority }))).toMatchObject({ priority: expected })
  })

  test('with a later start waits', async () => {
    const id = await submit('later', { not_before: Math.floor(Date.now() / 1000) + 3600 })
    const early = await submit('sooner')
    expect((await end(early)).status).toBe('completed')
    expect(await look(id, '?wait=0.2')).toMatchObject({
      status: 'pending',
      started_at: null,
      queued_at: null,
      attempts: 0,
      queue_position: null,
      waiting_for: { reason: 'not_before', eta_seconds: expect.any(Number) },
    })
    expect((await cancel(id)).body.status).toBe('cancelled')
  })

  test('with the latest possible start is kept until then', async () => {
    const id = await submit('never', { not_before: 9_999_999_999 })
    expect((await cancel(id)).body.status).toBe('cancelled')
  })

  test('runs once its busy model has a slot', async () => {
    const busy = await submit('hold the only slot', { model_id: 'narrow' })
    await engine.until(seen => seen.some(({ body }) => body.input === 'hold the only slot'))
    const waiting = await submit('patient', { model_id: 'narrow' })
    expect(await look(waiting, '?wait=0.3')).toMatchObject({
      finished_at: null,
      queue_position: 0,
      waiting_for: { reason: expect.any(String), detail: expect.any(String) },
    })
    expect(engine.seen.some(({ body }) => body.input === 'patient')).toBe(false)
    await cancel(busy)
    expect((await end(waiting)).status).toBe('completed')
  })
})

describe('reading a job', () => {
  test('with ?wait returns at its end', async () => {
    const id = await submit('hold for the wait')
    const waiting = end(id)
    await engine.until(seen => seen.some(({ body }) => body.input === 'hold for the wait'))
    await cancel(id)
    expect((await waiting).status).toBe('cancelled')
  })

  test('with ?wait returns after the timeout, and says when to ask again', async () => {
    const id = await submit('hold past the wait')
    const from = performance.now()
    const { status, body, headers } = await ask('GET', `/api/jobs/${id}?wait=0.3`)
    expect(performance.now() - from).toBeGreaterThan(250)
    expect([status, headers.get('retry-after')]).toEqual([200, '2'])
    expect(['pending', 'processing']).toContain(body.status)
    await cancel(id)
    expect((await ask('GET', `/api/jobs/${id}`)).headers.get('retry-after')).toBeNull()
  })

  test.each(['-1', '121', 'long', '1&wait=2'])('refuses ?wait=%s', async wait => {
    const { status, body } = await ask('GET', `/api/jobs/${await submit('a')}?wait=${wait}`)
    expect([status, body.error!.param]).toEqual([400, 'wait'])
  })
  test.each(['', '0', '0.0123456', '1e-9'])('takes ?wait=%s', async wait => {
    const id = await submit('hold a fraction')
    expect((await ask('GET', `/api/jobs/${id}?wait=${wait}`)).status).toBe(200)
    await cancel(id)
  })

  test.each([newId('job'), newId('tok'), 'job_1', '%2e%2e', "job_' OR 1=1"])('%s: 404', async id => {
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/cancel'],
    ] as const) {
      const { status, body } = await ask(method, `/api/jobs/${encodeURIComponent(id)}${path}`)
      expect([status, body.error!.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('a refused job is not created', () => {
  const good = { task: 'std/embeddings', model_id: 'far', inputs: { input: 'a' } }
  const chat = (more: object) => ({
    task: 'std/chat-completion',
    model_id: 'fake',
    inputs: { messages: [{ role: 'user', content: 'Hello' }], ...more },
  })
  test.each<[string, object, number, string, string]>([
    ['no task', { task: undefined }, 400, 'missing_required_parameter', 'task'],
    ['an unknown task', { task: 'std/telepathy' }, 400, 'invalid_value', 'task'],
    ['no model', { model_id: undefined }, 400, 'missing_required_parameter', 'model_id'],
    ['an unknown model', { model_id: 'none' }, 404, 'model_not_found', 'model_id'],
    ['an unknown model by its alias', { model_id: undefined, model: 'none' }, 404, 'model_not_found', 'model'],
    ['a model that is off', { model_id: 'off' }, 404, 'model_not_found', 'model_id'],
    ['a model of another task', { model_id: 'words' }, 400, 'unsupported_task', 'model_id'],
    ['no inputs', { inputs: undefined }, 400, 'missing_required_parameter', 'inputs'],
    ['inputs that are a list', { inputs: [] }, 400, 'invalid_type', 'inputs'],
    ['inputs without the input', { inputs: {} }, 400, 'missing_required_parameter', 'inputs.input'],
    ['an empty input', { inputs: { input: '' } }, 400, 'invalid_value', 'inputs.input'],
    [
      'a wrong input by its alias',
      { inputs: undefined, payload: {} },
      400,
      'missing_required_parameter',
      'payload.input',
    ],
    [
      'a wrong role',
      chat({ messages: [{ role: 'x', content: 'a' }] }),
      400,
      'invalid_value',
      'inputs.messages[0].role',
    ],
    ['too hot', chat({ temperature: 3 }), 400, 'invalid_value', 'inputs.temperature'],
    ['what the engine cannot do', { ...chat({ n: 2 }), model_id: 'words' }, 400, 'unsupported_parameter', 'inputs.n'],
    ['no attempts', { max_attempts: 0 }, 400, 'invalid_value', 'max_attempts'],
    ['a hundred attempts', { max_attempts: 100 }, 400, 'invalid_value', 'max_attempts'],
    ['a priority past 100', { priority: 101 }, 400, 'invalid_value', 'priority'],
    ['a priority in other words', { priority: 'soon' }, 400, 'invalid_value', 'priority'],
    ['metadata that is no text', { metadata: { a: 1 } }, 400, 'invalid_type', 'metadata.a'],
    ['no time to run', { timeout_seconds: 0 }, 400, 'invalid_value', 'timeout_seconds'],
    ['a month to begin', { start_timeout_seconds: 2_592_000 }, 400, 'invalid_value', 'start_timeout_seconds'],
    ['half a second to be kept', { expires_after_seconds: 0.5 }, 400, 'invalid_value', 'expires_after_seconds'],
    ['an unknown slug', { task: undefined, model_id: undefined, slug: 'no/such' }, 404, 'model_not_found', 'slug'],
  ])('%s', async (_, change, status, code, param) => {
    const before = await jobsInAll()
    const refused = await ask('POST', '/api/jobs', { ...good, ...change })
    expect([refused.status, refused.body.error!.code, refused.body.error!.param]).toEqual([status, code, param])
    if (code === 'missing_required_parameter') expect(refused.body.error!.message).toContain(`'${param}'`)
    expect(await jobsInAll()).toBe(before)
  })
})

describe('Idempotency-Key', () => {
  const withKey = (key: string, body: object) => ask('POST', '/api/jobs', body, { 'idempotency-key': key })

  test('the same body finds the same job, whatever the order of its members', async () => {
    const key = newId('req')
    const first = await withKey(key, { ...jobRequest('once'), metadata: { a: '1', b: '2' } })
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    const again = await withKey(key, {
      metadata: { b: '2', a: '1' },
      inputs: { input: 'once' },
      model_id: 'far',
      task: 'std/embeddings',
    })
    expect([again.status, again.body.id, again.body.queue_id]).toEqual([202, first.body.id, first.body.queue_id])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    await end(first.body.id)
    expect((await withKey(key, { ...jobRequest('once'), metadata: { a: '1', b: '2' } })).body.id).toBe(first.body.id)
    expect(engine.seen.filter(({ body }) => body.input === 'once')).toHaveLength(1)
  })

  test.each<[string, object, object]>([
    ['another input', {}, { inputs: { input: 'twice' } }],
    ['another priority', {}, { priority: 1 }],
    ['another model', {}, { model_id: 'narrow' }],
    ['a list turned around', { inputs: { input: ['a', 'b'] } }, { inputs: { input: ['b', 'a'] } }],
  ])('%s under the same key is 422', async (_, one, other) => {
    const key = newId('req')
    expect((await withKey(key, jobRequest('once', one))).status).toBe(202)
    const { status, body } = await withKey(key, jobRequest('once', other))
    expect([status, body.error!.code]).toEqual([422, 'idempotency_key_reused'])
  })

  test('50 at once create one job', async () => {
    const key = newId('req')
    const before = await jobsInAll()
    const answers = await Promise.all(Array.from({ length: 50 }, () => withKey(key, jobRequest('all at once'))))
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.id}`)).size).toBe(1)
    expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null)).toHaveLength(1)
    expect(await jobsInAll()).toBe(before + 1)
  })

  test('is of one organization', async () => {
    const other = await makeOrganization(app)
    const key = newId('req')
    const mine = await withKey(key, jobRequest('shared'))
    const theirs = await app.fetch('/api/jobs', {
      token: other.secret,
      body: jobRequest('theirs'),
      headers: { 'idempotency-key': key },
    })
    expect(theirs.status).toBe(202)
    expect(((await theirs.json()) as Job).id).not.toBe(mine.body.id)
  })

  test('a refused body does not use up the key', async () => {
    const key = newId('req')
    expect((await withKey(key, jobRequest('x', { model_id: 'none' }))).status).toBe(404)
    expect((await withKey(key, jobRequest('x'))).status).toBe(202)
  })

  test.each(['x'.repeat(256), 'ü'])('%s is no key', async key => {
    const { status, body } = await withKey(Buffer.from(key).toString('latin1'), jobRequest('a'))
    expect([status, body.error!.param]).toEqual([400, 'Idempotency-Key'])
  })
})

describe('failures', () => {
  test('an engine that fails twice and then works has three attempts', async () => {
    const id = await submit('late-2')
    const job = await end(id)
    expect([job.status, job.attempts, job.error]).toEqual(['completed', 3, null])
    expect(times.get('late-2')).toBe(3)
  })

  test('after max_attempts it is final, with the reason of the engine', async () => {
    const job = await end(await submit('500 twice', { max_attempts: 2 }))
    expect([job.status, job.attempts, job.result]).toEqual(['failed', 2, null])
    expect(job.error).toEqual({
      code: 'worker_error',
      message: expect.stringContaining('The engine answered 500. Trying again may help.'),
      type: 'server_error',
      retryable: true,
      attempt: 2,
    })
    expect(times.get('500 twice')).toBe(2)
    expect(job.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 })
  })

  test('inputs that the engine refuses fail at once', async () => {
    const job = await end(await submit('400 at once'))
    expect([job.status, job.attempts]).toEqual(['failed', 1])
    expect(job.error).toMatchObject({ code: 'invalid_value', retryable: false, attempt: 1 })
    expect(job.error!.message).toContain('I do not like this text')
    expect(times.get('400 at once')).toBe(1)
  })

  test('between two attempts the job is pending, with the reason', async () => {
    const id = await submit('500 between')
    await engine.until(seen => seen.some(({ body }) => body.input === '500 between'))
    await expect.poll(async () => (await look(id)).error?.code).toBe('worker_error')
    const job = await look(id)
    if (job.attempts < 3) expect(['pending', 'processing']).toContain(job.status)
    expect((await cancel(id)).body).toMatchObject({ status: 'cancelled', result: null })
  })
})

describe('cancel', () => {
  test('a waiting job: it never runs', async () => {
    const id = await submit('never', { not_before: Math.floor(Date.now() / 1000) + 1 })
    const { status, body } = await cancel(id)
    expect([status, body.status, body.started_at]).toEqual([200, 'cancelled', null])
    expect(body.finished_at).not.toBeNull()
    const later = await submit('after never', { not_before: Math.floor(Date.now() / 1000) + 2 })
    await end(later)
    expect(times.has('never')).toBe(false)
  })

  test('a running job: cancelled at once, the engine request is aborted, nothing is billed', async () => {
    const taken: number[] = []
    for (let time = 0; time < 30; time++) {
      const input = `hold ${time}`
      const id = await submit(input)
      await engine.until(seen => seen.some(({ body }) => body.input === input))
      const from = performance.now()
      const { status, body } = await cancel(id)
      expect([status, body.status]).toEqual([200, 'cancelled'])
      expect(body.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 })
      const seen = engine.seen.find(one => one.body.input === input)!
      await engine.until(() => seen.goneAt !== undefined)
      taken.push(seen.goneAt! - from)
    }
    taken.sort((a, b) => a - b)
    process.stdout.write(
      `cancel until the engine was told: p50 ${taken[14]!.toFixed(1)} ms, p99 ${taken[29]!.toFixed(1)} ms\n`,
    )
    expect(taken[29]!).toBeLessThan(5_000)
  })

  test('twice succeeds, and changes nothing', async () => {
    const id = await submit('hold again')
    const first = await cancel(id)
    const second = await cancel(id)
    expect([first.status, second.status]).toEqual([200, 200])
    expect(second.body).toEqual(first.body)
  })

  test.each([
    ['what has ended', 'a', 'completed'],
    ['what has failed', '400', 'failed'],
  ])('%s is too late: 409', async (_, input, status) => {
    const id = await submit(input)
    expect((await end(id)).status).toBe(status)
    const late = await cancel(id)
    expect([late.status, late.body.error!.code, late.headers.get('x-should-retry')]).toEqual([
      409,
      'job_already_finished',
      'false',
    ])
    expect(late.body.error!.message).toContain(status)
    expect((await look(id)).status).toBe(status)
  })

  test('200 jobs at random times: each ends once, and the ledger has a row for each ended job', async () => {
    const before = await metric('infer_ledger_rows_total')
    const terminal = new Map<string, string>()
    const one = async (at: number) => {
      const id = await submit(at % 3 ? `quick ${at}` : `hold random ${at}`)
      const pause = Math.random() * 60
      await look(id, `?wait=${pause / 1000}`)
      const cancelled = await cancel(id)
      expect([200, 409]).toContain(cancelled.status)
      const job = await end(id)
      expect(job.status).toBe(cancelled.status === 200 ? 'cancelled' : 'completed')
      terminal.set(id, job.status)
    }
    for (let from = 0; from < 200; from += 25) await Promise.all(Array.from({ length: 25 }, (_, at) => one(from + at)))
    for (const [id, status] of terminal) expect((await look(id)).status).toBe(status)
    const counted = [...terminal.values()].filter(status => status === 'completed').length
    process.stdout.write(`200 random cancels: ${counted} came too late\n`)
    expect(await metric('infer_ledger_rows_total')).toBe(before + 200)
    await engine.until(seen =>
      seen.every(({ body, goneAt }) => !String(body.input).startsWith('hold') || goneAt !== undefined),
    )
  })
})
