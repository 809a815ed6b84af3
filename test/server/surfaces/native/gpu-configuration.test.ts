import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Status {
  pauses: { id: string; configured: boolean; paused_devices: string[] }[]
}
const status = async () => (await (await app.fetch('/api/gpu')).json()) as Status
const plan = async () => await (await app.fetch('/api/plan?model=fake')).json()
const write = (config: object) =>
  writeFileSync(
    app.configPath,
    stringify({ models: [fakeModel('fake')], limits: { min_free_disk: 0, ballast: 0 }, ...config }),
  )
/** Every minute, for two: it holds from now on. */
const always = { schedule: '* * * * *', for: '2m' }

test('quiet hours hold when the file is saved, can be resumed but not removed, and end with their entry', async () => {
  write({ gpu: { quiet: [always] } })
  await expect.poll(status).toMatchObject({ pauses: [{ configured: true, paused_devices: ['cpu'] }] })
  const [{ id } = { id: '' }] = (await status()).pauses
  const removed = await app.fetch('/api/gpu/resume', { body: { pause: id } })
  expect([removed.status, await removed.json()]).toMatchObject([409, { error: { code: 'conflict' } }])
  expect(await (await app.fetch('/api/gpu/resume', { body: {} })).json()).toMatchObject({ resumed: ['cpu'] })
  write({})
  await expect.poll(status).toMatchObject({ pauses: [] })
})

test('a model that is pinned now is loaded when the file is saved, by the engine that it has; its plan says so', async () => {
  write({ models: [fakeModel('fake', [], { schedule: [{ at: '* * * * *', do: 'pin', for: '2m' }] })] })
  await expect.poll(plan).toMatchObject({
    status: 'ready',
    schedule: [{ action: 'pin', until: expect.any(Number) as number, next_at: expect.any(Number) as number }],
    devices: [{ engines: [{ model_id: 'fake', kept_loaded: true }] }],
  })
  write({})
  await expect.poll(plan).toMatchObject({
    status: 'ready',
    schedule: [],
    devices: [{ engines: [{ model_id: 'fake', kept_loaded: false }] }],
  })
})

test('a mistake in the file changes nothing', async () => {
  write({ gpu: { quiet: [{ schedule: '0 0 30 2 *', for: '1h' }] } })
  await app.logged('The changed configuration is invalid')
  app.errors.length = 0
  expect((await status()).pauses).toEqual([])
})
