import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Limits } from '../../core/config.ts'
import type { TestApp } from '../_app.ts'
import { type Answer, ask, chat, dag, job, organizationWith, shortVideo, startSpecified } from './_specification.ts'

/** Section 8 of the specification, by sentence. */

let app: TestApp
let slug: string
beforeAll(async () => {
  app = await startSpecified({ limits: { sync_wait: '50ms' } })
  const { body } = await ask(app, 'GET', '/api/model-status')
  slug = body.models.find((one: { model_id: string }) => one.model_id === 'demo').slugs['slug/text-to-video']
})
afterAll(() => app[Symbol.asyncDispose]())

const limitOf = ({ headers }: Answer) => Number(headers.get('x-ratelimit-limit-requests'))
const remainingOf = ({ headers }: Answer) => Number(headers.get('x-ratelimit-remaining-requests'))

describe('rate limits are per organization by plan', () => {
  test.each([
    ['Free', 'free', 60, 10],
    ['Pro', 'pro', 600, 100],
    ['Enterprise', 'enterprise', 6_000, 1_000],
  ])('%s', async (_, plan, requests, jobs) => {
    const { secret } = await organizationWith(app, { plan })
    expect(limitOf(await ask(app, 'GET', '/api/me', undefined, secret))).toBe(requests)
    expect(limitOf(await ask(app, 'POST', '/api/jobs', job, secret))).toBe(jobs)
  })

  test('Free: exactly 60 requests and 10 submissions pass at once, the next is refused', async () => {
    const { secret } = await organizationWith(app, { plan: 'free' })
    const statuses = async (count: number, send: () => Promise<Answer>) => {
      const answers = await Promise.all(Array.from({ length: count }, send))
      return answers.filter(({ status }) => status !== 429).length
    }
    const began = performance.now()
    const passed = await statuses(75, () => ask(app, 'GET', '/api/me', undefined, secret))
    const refilled = Math.ceil((performance.now() - began) / 1_000)
    expect(passed).toBeGreaterThanOrEqual(60)
    expect(passed).toBeLessThanOrEqual(60 + refilled)
    const submitting = performance.now()
    const submitted = await statuses(20, () => ask(app, 'POST', '/api/jobs', job, secret))
    expect(submitted).toBeGreaterThanOrEqual(10)
    expect(submitted).toBeLessThanOrEqual(10 + Math.ceil((performance.now() - submitting) / 6_000))
  })
})

describe('a job submission is a POST or PUT to /std/v1/*, /slug/*, /api/jobs, or a workflow execution endpoint', () => {
  test.each<[string, string, string, unknown]>([
    ['POST /std/v1/*', 'POST', '/std/v1/chat/completions', chat],
    ['POST /slug/*', 'POST', '/slug/SLUG', shortVideo],
    ['POST /api/jobs', 'POST', '/api/jobs', job],
    ['POST to a workflow execution endpoint', 'POST', '/api/workflows/WORKFLOW/execute', { input_params: {} }],
    ['PUT to /slug/*', 'PUT', '/slug/requests/q_absent/cancel', undefined],
  ])('%s', async (_, method, path, body) => {
    const { secret } = await organizationWith(app, { plan: 'free' })
    const { body: made } = await ask(app, 'POST', '/api/workflows', { name: 'w', dag }, secret)
    const sent = await ask(app, method, path.replace('WORKFLOW', made.workflow.id).replace('SLUG', slug), body, secret)
    expect([limitOf(sent), remainingOf(sent)]).toEqual([10, 9])
  })

  test.each<[string, string, unknown]>([
    ['GET', '/std/v1/models', undefined],
    ['GET', '/api/jobs', undefined],
    ['POST', '/api/workflows', { name: 'w', dag }],
    ['POST', '/api/jobs/job_absent/cancel', {}],
  ])('every other request counts as an API request: %s %s', async (method, path, body) => {
    const { secret } = await organizationWith(app, { plan: 'free' })
    expect(limitOf(await ask(app, method, path, body, secret))).toBe(60)
  })

  test('exceeding a limit gives 429 with code `rate_limit`', async () => {
    const { secret } = await organizationWith(app, { jobsPerMinute: 1 })
    expect((await ask(app, 'POST', '/api/jobs', job, secret)).status).toBe(202)
    const { status, body } = await ask(app, 'POST', '/api/jobs', job, secret)
    expect([status, body.error.code]).toEqual([429, 'rate_limit'])
  })
})

describe('other limits', () => {
  const submit = (body: object) => ask(app, 'POST', `/slug/${slug}`, { ...shortVideo, ...body })

  test('sync mode wait: up to 120 s; then 504, and the request continues', async () => {
    expect(Limits.parse({}).sync_wait).toBe(120_000)
    const { status, body } = await submit({ sync_mode: true, num_frames: 300 })
    expect([status, body.error.code, body.status]).toEqual([504, 'timeout', 'processing'])
    await ask(app, 'POST', `/slug/requests/${body.request_id}/cancel`, {})
  })

  test('batch status query: at most 50 identifiers', async () => {
    const ids = (count: number) => ({ request_ids: Array.from({ length: count }, (_, at) => `q_${at}`) })
    expect((await ask(app, 'POST', '/slug/requests/batch', ids(50))).status).toBe(200)
    const { status, body } = await ask(app, 'POST', '/slug/requests/batch', ids(51))
    expect([status, body.error.param]).toEqual([400, 'request_ids'])
  })

  test.each([
    ['num_frames: 1-300', 'num_frames', [1, 300], [0, 301]],
    ['fps: 1-60', 'fps', [1, 60], [0, 61]],
    ['num_inference_steps: 1-50', 'num_inference_steps', [1, 50], [0, 51]],
    ['guidance_scale: 1-20', 'guidance_scale', [1, 20], [0.9, 20.1]],
  ])('%s', async (_, field, allowed, refused) => {
    for (const value of refused) {
      const { status, body } = await submit({ [field]: value })
      expect([value, status, body.error.param]).toEqual([value, 400, field])
    }
    for (const value of allowed) {
      const { status, body } = await submit({ [field]: value })
      expect([value, status]).toEqual([value, 202])
      await ask(app, 'POST', `/slug/requests/${body.request_id}/cancel`, {})
    }
  })

  test('workflow timeout: a run exceeding it is cancelled', async () => {
    const slow = {
      nodes: {
        a: {
          model_id: 'fake',
          task: 'std/chat-completion',
          inputs: { messages: [{ role: 'user', content: 'mode:slow,ms=60000' }] },
        },
      },
      edges: [],
    }
    const { body: made } = await ask(app, 'POST', '/api/workflows', { name: 'w', dag: slow, timeout: 1 })
    const { body: begun } = await ask(app, 'POST', `/api/workflows/${made.workflow.id}/execute`, { input_params: {} })
    const { body } = await ask(app, 'GET', `/api/workflow-executions/${begun.execution.id}?wait=30`)
    expect(body.execution).toMatchObject({ status: 'timed_out', outputs: null, error: { code: 'timeout' } })
  })

  test('monthly spend limit: per organization', async () => {
    const { secret } = await organizationWith(app, { monthlySpendLimit: 5_000_000 })
    const { body } = await ask(app, 'GET', '/api/me', undefined, secret)
    expect(body.organization.limits).toMatchObject({ monthly_spend_limit: 5 })
  })
})

describe('polling schedule for async requests', () => {
  test('first poll 2 s after submission', async () => {
    const { headers, body } = await ask(app, 'POST', `/slug/${slug}`, shortVideo)
    const polled = await ask(app, 'GET', `/slug/requests/${body.request_id}`)
    expect([
      headers.get('retry-after') ?? '2',
      polled.body.status === 'completed' ? '2' : polled.headers.get('retry-after'),
    ]).toEqual(['2', '2'])
  })
})
