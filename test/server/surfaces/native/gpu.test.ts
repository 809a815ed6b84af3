import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake', [], { concurrency: 1 })] })
})
afterAll(() => app[Symbol.asyncDispose]())
afterEach(async () => {
  const { pauses } = (await (await app.fetch('/api/gpu')).json()) as Status
  for (const { id } of pauses) await ask('resume', { pause: id })
})

interface Pause {
  id: string
  paused_devices: string[]
}
interface Status {
  devices: { id: string; paused: { until: number | null; reason: string } | null }[]
  engines: unknown[]
  pauses: Pause[]
  pause: Pause
  resumed: string[]
  error: { code: string; param: string | null; message: string }
}
async function ask(what: 'pause' | 'resume', body: object, token?: string): Promise<Status & { http: number }> {
  const response = await app.fetch(`/api/gpu/${what}${what === 'pause' ? '?wait=30' : ''}`, {
    body,
    ...(token ? { token } : {}),
  })
  return { http: response.status, ...((await response.json()) as Status) }
}
const embed = () => app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'Hello' } })

test('pause and resume: the engine leaves, a request waits and is served, and the audit log has both', async () => {
  expect((await embed()).status).toBe(200)
  const paused = await ask('pause', {})
  expect(paused).toMatchObject({
    http: 200,
    object: 'gpu.status',
    engines: [],
    devices: [{ id: 'cpu', paused: { until: null, reason: 'cpu is paused until it is resumed.' } }],
    pause: { devices: null, until: null, when: null, schedule: null, paused_devices: ['cpu'], ends_at: null },
  })
  const made = await app.fetch('/api/jobs', {
    body: { task: 'std/embeddings', model: 'fake', inputs: { input: 'Hi' } },
  })
  const job = (await made.json()) as { id: string }
  const answer = embed()
  const status = async () =>
    (await (await app.fetch('/api/system/status')).json()) as {
      models: { waiting: number; waiting_for: object; reason: string }[]
      waiting: { waiting_for: object }[]
    }
  await expect
    .poll(async () => (await status()).models[0])
    .toMatchObject({
      waiting: 2,
      reason: "'fake' waits: cpu is paused until it is resumed.",
      waiting_for: { reason: 'paused', eta_seconds: null },
    })
  expect((await status()).waiting).toMatchObject([{ waiting_for: { reason: 'paused' } }])
  expect(await (await app.fetch(`/api/jobs/${job.id}`)).json()).toMatchObject({
    status: 'pending',
    attempts: 0,
    waiting_for: { reason: 'paused' },
  })
  expect(await (await app.fetch('/api/plan?model=fake')).json()).toMatchObject({
    status: 'wait',
    eta_seconds: null,
    detail: "'fake' waits: cpu is paused until it is resumed.",
    devices: [{ id: 'cpu', paused: 'cpu is paused until it is resumed.' }],
  })
  expect(await (await app.fetch('/metrics')).text()).toContain('infer_device_paused{device="cpu"} 1')

  expect(await ask('resume', { devices: ['cpu'] })).toMatchObject({ http: 200, resumed: ['cpu'], pauses: [] })
  expect((await answer).status).toBe(200)
  const ended = await app.fetch(`/api/jobs/${job.id}?wait=30`)
  expect(await ended.json()).toMatchObject({ status: 'completed' })
  const audit = await app.fetch(`/api/organizations/${app.organizationId}/audit?limit=2`)
  expect(await audit.json()).toMatchObject({
    entries: [
      { action: 'device_pause.ended', target: { type: 'device_pause', id: paused.pause.id } },
      { action: 'device_pause.created', after: { devices: null, until: null } },
    ],
  })
})

test('a request that would wait longer than requests are held is refused with the time of the end', async () => {
  const until = Math.floor(Date.now() / 1000) + 7_200
  expect(await ask('pause', { until })).toMatchObject({ pause: { until, ends_at: until } })
  const answer = await embed()
  expect(answer.status).toBe(503)
  expect(await answer.json()).toMatchObject({
    error: {
      code: 'no_capacity',
      eta_seconds: expect.toSatisfy((seconds: number) => seconds > 7_000 && seconds < 7_300) as number,
      message: expect.stringContaining("'fake' waits: cpu is paused until 20") as string,
    },
  })
})

test('rules are listed, ended for this time and removed', async () => {
  const shown = { http: 200, pause: { paused_devices: [], ends_at: null } }
  const program = await ask('pause', { when: 'process:no-such-program' })
  expect(program).toMatchObject({ ...shown, pause: { when: 'process:no-such-program' } })
  const night = await ask('pause', { schedule: '0 4 29 2 *', for: 3600, timezone: 'Europe/Berlin' })
  expect(night).toMatchObject({
    ...shown,
    pause: {
      schedule: { cron: '0 4 29 2 *', timezone: 'Europe/Berlin', for: 3600 },
      next_at: expect.any(Number) as number,
    },
  })
  expect(await ask('resume', {})).toMatchObject({
    resumed: [],
    pauses: [{ id: program.pause.id }, { id: night.pause.id }],
  })
  expect(await ask('resume', { pause: night.pause.id })).toMatchObject({ pauses: [{ id: program.pause.id }] })
  expect(await ask('resume', { pause: night.pause.id })).toMatchObject({ http: 404 })
})

test.each<[rule: string, what: 'pause' | 'resume', body: object, param: string, message: string]>([
  [
    'an unknown device',
    'pause',
    { devices: ['gpu7'] },
    'devices',
    "There is no device 'gpu7' here. This server has cpu (",
  ],
  ['an unknown device to resume', 'resume', { devices: [7] }, 'devices', "There is no device '7' here."],
  ['a time that is over', 'pause', { until: 1 }, 'until', "The time of 'until' is over"],
  ['two ends', 'pause', { until: 9_000_000_000, for: 1 }, 'for', "either 'until' or 'for'"],
  ['no program', 'pause', { when: 'steam' }, 'when', 'Write process: and the name of a program'],
  ['a path', 'pause', { when: 'process:/usr/bin/x' }, 'when', 'without its path'],
  ['a schedule that never comes', 'pause', { schedule: '0 0 30 2 *', for: 60 }, 'schedule', 'never comes'],
  ['a schedule without a length', 'pause', { schedule: '0 0 * * *' }, 'for', "needs 'for'"],
  ['a length of a second', 'pause', { schedule: '0 0 * * *', for: 1 }, 'for', 'a minute at least'],
  [
    'an unknown time zone',
    'pause',
    { schedule: '0 0 * * *', for: 60, timezone: 'Mars/Base' },
    'timezone',
    'no time zone',
  ],
  ['a time zone alone', 'pause', { timezone: 'UTC' }, 'timezone', "only for a pause with 'schedule'"],
  ['both conditions', 'pause', { schedule: '0 0 * * *', for: 60, when: 'process:x' }, 'when', 'Create two pauses'],
  ['no device', 'pause', { devices: [] }, 'devices', ''],
])('%s is refused', async (_, what, body, param, message) => {
  expect(await ask(what, body)).toMatchObject({
    http: 400,
    error: { param, message: expect.stringContaining(message) as string },
  })
})

test('only the owner of the machine may', async () => {
  const other = await makeOrganization(app)
  for (const what of ['pause', 'resume'] as const)
    expect(await ask(what, {}, other.secret)).toMatchObject({ http: 403, error: { code: 'organization_mismatch' } })
  expect((await app.fetch('/api/gpu', { token: other.secret })).status).toBe(403)
})
