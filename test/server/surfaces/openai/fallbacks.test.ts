import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

/** Models that answer in place of others: when, for whom, at which price. */
let app: TestApp
const price = (input_per_million_tokens: number) => ({ price: { input_per_million_tokens } })

beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('good', [], price(3)),
      fakeModel('other', ['--as', 'llama-server'], price(7)),
      fakeModel('dead', ['--exit', '3'], {
        ...price(1),
        dispatch_wait_ms: '500ms',
        aliases: ['lazy'],
        profiles: { kind: { system_prompt: 'Be kind', price: { input_per_million_tokens: 2 } } },
        fallbacks: [{ model: 'good' }],
      }),
      fakeModel('breaks', [], {
        ...price(1),
        fallbacks: [{ model: 'other', when: ['context'] }, { model: 'good' }],
      }),
      fakeModel('slow', [], { concurrency: 1, fallbacks: [{ model: 'good', when: [], wait: '200ms' }] }),
      fakeModel('loads', ['--ready-after', '60000'], { fallbacks: [{ model: 'good', when: [], wait: '300ms' }] }),
      fakeModel('ends', [], { command: ['/bin/false', '{port}'], fallbacks: [{ model: 'good' }] }),
      fakeModel('huge', [], { memory: '100TiB', fallbacks: [{ model: 'good' }] }),
      fakeModel('chain', ['--exit', '3'], { fallbacks: [{ model: 'dead' }, { model: 'good' }] }),
      fakeModel('alone', ['--exit', '3'], { fallbacks: [{ model: 'dead' }] }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Answer {
  status: number
  headers: Headers
  body: { model?: string; usage?: { prompt_tokens: number }; error?: { code: string; message: string } }
  record: Record<string, unknown> | undefined
}

async function chat(model: string, content = 'Hello', more: object = {}, token?: string): Promise<Answer> {
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model, messages: [{ role: 'user', content }], ...more },
    ...(token === undefined ? {} : { token }),
  })
  const body = (await answer.json()) as Answer['body']
  const id = answer.headers.get('x-job-id')
  const record = id === null ? undefined : ((await (await app.fetch(`/api/jobs/${id}?wait=10`)).json()) as object)
  return { status: answer.status, headers: answer.headers, body, record: record as Answer['record'] }
}

const told = ({ headers }: Answer) => [headers.get('x-infer-model'), headers.get('x-infer-fallback')]

test('a model that answers has no fallback', async () => {
  const answer = await chat('breaks')
  expect(told(answer)).toEqual([null, null])
  expect(answer.record).toMatchObject({ model_id: 'breaks', requested_model: null, fallback_reason: null })
})

test('the fallback of a model that cannot be started answers, at its own price', async () => {
  const answer = await chat('dead')
  expect(answer.status).toBe(200)
  expect(answer.body.model).toBe('good')
  expect(told(answer)).toEqual(['good', 'dead; failed'])
  const line = app.lines.find(one => one.includes('A fallback answers a request'))
  expect(line).toContain('"from":"dead","model":"good","reason":"failed"')
  expect(answer.record).toMatchObject({
    status: 'completed',
    model_id: 'good',
    requested_model: 'dead',
    fallback_reason: 'failed',
    cost: 3e-6,
  })
})

test('one request leaves one record, which the ledger has too', async () => {
  const { secret } = await makeOrganization(app)
  await chat('dead', 'Hello', {}, secret)
  await expect
    .poll(async () => ((await (await app.fetch('/api/jobs', { token: secret })).json()) as { jobs: object[] }).jobs)
    .toMatchObject([{ model_id: 'good', requested_model: 'dead', fallback_reason: 'failed', status: 'completed' }])
})

test.each<[what: string, mode: string, fallback: string | null]>([
  ['an error of its own', 'mode:status,code=500', 'breaks; failed'],
  ['a refusal of the request', 'mode:status,code=400', null],
  ['that the prompt is too long', 'mode:status,code=400,text=context_length_exceeded', 'breaks; context'],
])('a model that answers %s before the first byte', async (_, mode, fallback) => {
  expect(told(await chat('breaks', mode))[1]).toBe(fallback)
})

test('an alias is recorded as the requested model, and a profile keeps its prompt but not its price', async () => {
  expect((await chat('lazy')).record).toMatchObject({ model_id: 'good', requested_model: 'lazy', cost: 3e-6 })
  const answer = await chat('kind')
  expect(answer.body.usage?.prompt_tokens).toBe(3)
  expect(answer.record).toMatchObject({ requested_model: 'kind', cost: 9e-6 })
})

describe('a wait', () => {
  test('for a slot that is longer than allowed goes to the fallback', async () => {
    await app.fetch('/api/models/slow/load?wait=30', { method: 'POST' })
    const busy = chat('slow', 'mode:slow,ms=1500')
    const [first, second] = await Promise.all([busy, chat('slow')])
    expect(new Set([first.body.model, second.body.model])).toEqual(new Set(['good', 'slow']))
    const fell = [first, second].find(({ body }) => body.model === 'good')!
    expect(told(fell)).toEqual(['good', 'slow; wait'])
  })

  test('for a load that is longer than allowed goes to the fallback', async () => {
    const answer = await chat('loads')
    expect(told(answer)).toEqual(['good', 'loads; wait'])
  })
})

test('the fallbacks of a fallback are not asked, and each is asked once', async () => {
  expect(told(await chat('chain'))).toEqual(['good', 'chain; failed'])
  const failed = await chat('alone')
  expect([502, 503]).toContain(failed.status)
  expect(failed.body.model).toBeUndefined()
})

test('a token that may not use the fallback gets the failure of the model', async () => {
  const { secret } = await makeOrganization(app, { models: ['dead'] })
  const answer = await chat('dead', 'Hello', {}, secret)
  // Its load has failed, or the request has waited for as long as it may.
  expect([502, 503]).toContain(answer.status)
  expect(told(answer)).toEqual([null, null])
})

test('a stream is answered by the fallback from its first byte', async () => {
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'dead', messages: [{ role: 'user', content: 'Hello' }], stream: true },
  })
  expect(answer.headers.get('x-infer-fallback')).toBe('dead; failed')
  const text = await answer.text()
  expect(text).toContain('"model":"good"')
  expect(text).toContain('data: [DONE]')
})

describe('a job', () => {
  const inputs = (content: string) => ({ messages: [{ role: 'user', content }] })
  const task = 'std/chat-completion'

  async function run(model_id: string, content: string, token = app.secret, more: object = {}) {
    const made = await app.fetch('/api/jobs', { body: { task, model_id, inputs: inputs(content), ...more }, token })
    const { id } = (await made.json()) as { id: string }
    return (await (await app.fetch(`/api/jobs/${id}?wait=20`, { token })).json()) as Record<string, unknown>
  }

  test('whose prompt is too long is done by the fallback for that', async () => {
    // The first fallback says the same, and so does the last.
    expect(await run('breaks', 'mode:status,code=400,text=context_length_exceeded')).toMatchObject({
      status: 'failed',
      model_id: 'good',
      requested_model: 'breaks',
      fallback_reason: 'context',
      error: { code: 'context_length_exceeded' },
    })
  })

  test.each(['ends', 'huge'])('whose model cannot be started or placed is done by its fallback: %s', async model => {
    expect(await run(model, 'Hello', app.secret, { max_attempts: 2 })).toMatchObject({
      status: 'completed',
      model_id: 'good',
      requested_model: model,
      fallback_reason: 'failed',
      cost: 3e-6,
    })
    const line = app.lines.find(one => one.includes('A fallback does a job') && one.includes(`"from":"${model}"`))
    expect(line).toContain('"model":"good","reason":"failed"')
    expect(app.lines.filter(one => one.includes('could not be started') && one.includes(`"${model}"`))).toHaveLength(
      model === 'ends' ? 2 : 0,
    )
  })

  test('that waits longer for its model than allowed is done by the fallback', async () => {
    expect(await run('loads', 'Hello')).toMatchObject({
      status: 'completed',
      model_id: 'good',
      requested_model: 'loads',
      fallback_reason: 'wait',
    })
  })

  test('waits on where no fallback may do it', async () => {
    const { secret } = await makeOrganization(app, { models: ['dead'] })
    const made = await app.fetch('/api/jobs', {
      body: { task, model_id: 'dead', inputs: inputs('Hello'), max_attempts: 1 },
      token: secret,
    })
    const { id } = (await made.json()) as { id: string }
    await run('dead', 'Hello', app.secret, { max_attempts: 1 })
    const job = await app.fetch(`/api/jobs/${id}`, { token: secret })
    expect(await job.json()).toMatchObject({ status: 'pending', model_id: 'dead' })
  })

  test('that goes to a fallback is one job, and nothing stays held', async () => {
    const { secret } = await makeOrganization(app, { monthlySpendLimit: 1_000_000 })
    expect(await run('breaks', 'mode:status,code=400,text=context_length_exceeded', secret)).toMatchObject({
      status: 'failed',
      model_id: 'good',
      cost: 0,
    })
    const { jobs } = (await (await app.fetch('/api/jobs', { token: secret })).json()) as { jobs: object[] }
    expect(jobs).toHaveLength(1)
    const { spend } = (await (await app.fetch('/api/me', { token: secret })).json()) as {
      spend: { organization: object }
    }
    expect(spend.organization).toMatchObject({ spent: 0, held: 0 })
  })
})

test('a stream that fails after its first byte ends as that of its own model', async () => {
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'breaks', stream: true, messages: [{ role: 'user', content: 'mode:crash,after=3' }] },
  })
  const text = await answer.text()
  expect(text).toContain('"code":"worker_error"')
  const job = await app.fetch(`/api/jobs/${answer.headers.get('x-job-id')}?wait=10`)
  expect(await job.json()).toMatchObject({
    status: 'failed',
    model_id: 'breaks',
    fallback_reason: null,
    error: { code: 'worker_error' },
  })
})
