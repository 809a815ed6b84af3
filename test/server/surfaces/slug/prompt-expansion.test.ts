import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { stringify } from 'yaml'
import { openApp } from '../../../../cli/server/app.ts'
import { openLog } from '../../../../core/log.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { ask, painters, small, submitted, until } from './_painter.ts'

let app: TestApp
const prompt = 'a cat mode:rewrites'
beforeAll(async () => {
  app = await startApp({
    models: [fakeModel('writer'), ...painters],
    prompt_rewriting: { model: 'writer' },
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const jobOf = async (id: string) => (await ask(app, `/api/jobs/job_${id.slice(2)}`)).body

test.each([
  ['enable_prompt_expansion', 'fake/paint/text-to-image'],
  ['prompt_optimizer', 'fake/paint/text-to-image'],
  ['enable_prompt_expansion', 'fake/paint/text-to-video'],
])('%s on %s: the engine gets the rewritten prompt, and the result has both', async (field, slug) => {
  const id = await submitted(app, slug, { prompt, [field]: true })
  const { result, logs } = await until(app, id, 'COMPLETED')
  expect(result).toMatchObject({ prompt: 'rewritten 1', original_prompt: prompt })
  const inputs = JSON.parse(logs[0].message) as Record<string, unknown>
  expect(inputs).toMatchObject({ prompt: 'rewritten 1', seed: 7 })
  expect(inputs).not.toHaveProperty('original_prompt')
  expect(inputs).not.toHaveProperty('prompt_expansion')
})

test('without it the result has one prompt', async () => {
  const { result } = await until(app, await submitted(app, 'fake/solo'), 'COMPLETED')
  expect(result.prompt).toBe('a cat')
  expect(result).not.toHaveProperty('original_prompt')
})

test('sync_mode waits for the rewrite too', async () => {
  const { status, body } = await ask(app, '/slug/fake/solo', {
    body: { ...small, prompt, enable_prompt_expansion: true, sync_mode: true },
  })
  expect([status, body.prompt, body.original_prompt]).toEqual([200, 'rewritten 1', prompt])
})

test('fal’s clients get the same', async () => {
  const { status, body } = await ask(app, '/fal/run/fake/solo', {
    body: { ...small, prompt, enable_prompt_expansion: true },
  })
  expect([status, body.prompt, body.original_prompt]).toEqual([200, 'rewritten 1', prompt])
})

test('a job of /api/jobs is rewritten before it runs, and keeps its earliest start', async () => {
  const not_before = Math.floor(Date.now() / 1000) + 3_600
  const { body } = await ask(app, '/api/jobs', {
    body: { slug: 'fake/solo', inputs: { ...small, prompt, enable_prompt_expansion: true }, not_before },
  })
  const waiting = async () => expect((await jobOf(body.queue_id)).waiting_for.reason).toBe('not_before')
  await vi.waitFor(waiting, { timeout: 40_000 })
  expect((await jobOf(body.queue_id)).inputs).toMatchObject({ prompt: 'rewritten 1' })
})

test('while its prompt is rewritten a job waits in no queue, and says why', async () => {
  const id = await submitted(app, 'fake/solo', { prompt: 'mode:slow,ms=1500', enable_prompt_expansion: true })
  const job = await jobOf(id)
  expect(job).toMatchObject({
    status: 'pending',
    queue_position: null,
    queued_at: null,
    waiting_for: { reason: 'prompt_rewriting' },
    inputs: { prompt: 'mode:slow,ms=1500', enable_prompt_expansion: true },
  })
  const cancelled = await ask(app, `/api/jobs/${job.id}/cancel`, { method: 'POST' })
  expect([cancelled.body.status, cancelled.body.queued_at]).toEqual(['cancelled', job.created_at])
})

test('several aspect ratios of one request get the same prompt, which is rewritten once', async () => {
  const { organizationId, secret } = await makeOrganization(app)
  const { body } = await ask(app, '/slug/fake/paint/text-to-video', {
    token: secret,
    body: {
      prompt,
      num_frames: 2,
      fps: 8,
      enable_prompt_expansion: true,
      aspect_ratios: ['16:9', '9:16', '1:1'],
    },
  })
  expect(organizationId).toMatch(/^org_/)
  const done = async () => {
    const { jobs } = (await ask(app, '/api/jobs?limit=10', { token: secret })).body
    expect(jobs.map(({ status }: { status: string }) => status).toSorted()).toEqual(Array(4).fill('completed'))
    return jobs as { kind: string }[]
  }
  const jobs = await vi.waitFor(done, { timeout: 40_000, interval: 100 })
  expect(jobs.filter(({ kind }) => kind === 'sync')).toHaveLength(1)
  for (const { request_id } of body.requests) {
    const { body: one } = await ask(app, `/slug/requests/${request_id}`, { token: secret })
    expect([one.prompt, one.original_prompt]).toEqual(['rewritten 1', prompt])
  }
})

test('a prompt that cannot be rewritten fails the job with the reason, and a retry asks for it again', async () => {
  const id = await submitted(app, 'fake/solo', { prompt: 'mode:status,code=400', enable_prompt_expansion: true })
  const { error } = await until(app, id, 'FAILED')
  expect(error.message).toMatch(/^The prompt could not be rewritten: .*Without 'enable_prompt_expansion'/)
  expect((await jobOf(id)).attempts).toBe(0)
  const { body } = await ask(app, `/api/jobs/job_${id.slice(2)}/retry`, { method: 'POST' })
  expect((await jobOf(body.queue_id)).inputs).toMatchObject({ enable_prompt_expansion: true })
})

test('a retry of a job uses the rewritten prompt', async () => {
  const id = await submitted(app, 'fake/solo', { prompt, enable_prompt_expansion: true })
  await until(app, id, 'COMPLETED')
  const { body } = await ask(app, `/api/jobs/job_${id.slice(2)}/retry`, { method: 'POST' })
  const { result } = await until(app, body.queue_id, 'COMPLETED')
  expect(result.prompt).toBe('rewritten 1')
})

test('a token that may not use the chat model is refused at once', async () => {
  const { secret } = await makeOrganization(app, { models: ['solo'] })
  const { status, body } = await ask(app, '/slug/fake/solo', {
    token: secret,
    body: { ...small, enable_prompt_expansion: true },
  })
  expect([status, body.error]).toMatchObject([403, { code: 'model_not_allowed', param: 'enable_prompt_expansion' }])
})

test('a task that does not use its prompt refuses it', async () => {
  const { status, body } = await ask(app, '/slug/fake/paint/video-interpolation', {
    body: { video_url: 'file-1', enable_prompt_expansion: true },
  })
  expect([status, body.error]).toMatchObject([400, { code: 'unsupported_parameter', param: 'enable_prompt_expansion' }])
})

test('a workflow with it is refused, and says what to do instead', async () => {
  const dag = {
    nodes: {
      paint: {
        model_id: 'solo',
        task: 'slug/text-to-image',
        inputs: { prompt: 'a cat', enable_prompt_expansion: true },
        outputs: [],
      },
    },
    edges: [],
  }
  const { status, text } = await ask(app, '/api/workflows/run', { body: { dag } })
  expect([status, text]).toEqual([400, expect.stringContaining('Put a node with a chat model before this one')])
})

test('nothing is lost in a restart: a held job is rewritten and runs after it', async () => {
  const configOf = (writer: object) => ({ models: [writer, ...painters], prompt_rewriting: { model: 'writer' } })
  // The chat model never gets ready, so the job is still held when the server stops.
  await using first = await startApp(configOf(fakeModel('writer', ['--ready-after', '600000'])))
  const id = await submitted(first, 'fake/solo', { prompt, enable_prompt_expansion: true })
  await first.app.close()

  const { dataDir, configPath, secret } = first
  writeFileSync(configPath, stringify({ ...configOf(fakeModel('writer')), limits: { min_free_disk: 0, ballast: 0 } }))
  const log = openLog('error', () => {})
  const second = await openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  try {
    const url = `${second.url}/api/jobs/job_${id.slice(2)}?wait=30`
    const job = await (await fetch(url, { headers: { authorization: `Bearer ${secret}` } })).json()
    expect(job).toMatchObject({
      status: 'completed',
      attempts: 1,
      result: { prompt: 'rewritten 1', original_prompt: prompt },
    })
  } finally {
    await second.close()
  }
})
