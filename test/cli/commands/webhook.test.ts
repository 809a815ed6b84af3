import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { execa } from 'execa'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryView, WebhookView } from '../../../core/webhooks/webhook-view.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { openReceiver, type Receiver } from '../../_receiver.ts'
import { entry, infer, json, temporaryFolder } from '../_infer.ts'

let receiver: Receiver
beforeAll(async () => void (receiver = await openReceiver()))
afterAll(() => receiver[Symbol.asyncDispose]())

interface Made {
  webhook: WebhookView
  signing_secret: string
}

/** Runs subcommands; a refused one prints its message. */
const runner =
  (env: Record<string, string>, ...more: string[]) =>
  (...args: string[]) =>
    infer(['webhook', ...args, ...more], { env })
type Run = ReturnType<typeof runner>
const at = (path: string) => (received: { path: string }) => received.path === path

/** What every way of reaching the webhooks can do. */
async function lifecycle(run: Run, path: string): Promise<void> {
  const url = receiver.url + path
  const { webhook, signing_secret } = json(
    await run('create', url, '--name', 'n', '--events', 'job.*', '--json'),
  ) as Made
  expect(webhook).toMatchObject({ name: 'n', url, event_types: ['job.*'], enabled: true })
  expect((json(await run('list', '--json')) as { webhooks: WebhookView[] }).webhooks).toEqual([webhook])
  const table = (await run('list')).stdout
  expect(table).toContain(`${webhook.id}  n     enabled  job.*   ${url}`)

  const tested = await run('test', webhook.id, '--json')
  expect([tested.exitCode, json(tested)]).toMatchObject([0, { success: true, status_code: 204 }])
  const message = await receiver.next(at(path))
  new Webhook(signing_secret).verify(message.text, message.headers as Record<string, string>)

  const rotated = json(await run('rotate', webhook.id, '--overlap', '1h', '--json')) as Made
  expect(rotated.signing_secret).not.toBe(signing_secret)
  expect(rotated.webhook.previous_secret_until! - Date.now() / 1000).toBeGreaterThan(3_500)
  const changed = await run('update', webhook.id, '--events', 'quota.*', '--disable')
  expect([changed.exitCode, changed.stdout]).toEqual([0, `Webhook n (${webhook.id}), disabled: quota.* to ${url}.\n`])
  expect((json(await run('deliveries', webhook.id, '--json')) as { deliveries: DeliveryView[] }).deliveries).toEqual([])

  const before = (await run('secret')).stdout.trim()
  expect(Buffer.from(before.replace('whsec_', ''), 'base64')).toHaveLength(32)
  const after = (await run('rotate', '--overlap', '0s')).stdout.trim()
  expect((await run('secret')).stdout.trim()).toBe(after)
  expect(after).not.toBe(before)

  expect((await run('delete', webhook.id)).stdout).toBe(`Deleted ${webhook.id}.\n`)
  for (const args of [
    ['delete', webhook.id],
    ['test', webhook.id],
    ['rotate', webhook.id],
    ['deliveries', webhook.id],
    ['update', webhook.id, '--enable'],
    ['redeliver', 'msg_01K00000000000000000000000'],
  ])
    expect([args[0], (await run(...args)).exitCode]).toEqual([args[0], 1])
}

const allowed = { allowed_addresses: ['127.0.0.1'], retry_delays: [] }

test('on the data directory, without a server', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), `webhooks: ${JSON.stringify(allowed)}\n`)
  await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  await lifecycle(runner({}, '--data-dir', dataDir), '/local')
})

test('a URL that may not be sent to is refused', async () => {
  const dataDir = temporaryFolder()
  await infer(['org', 'create', 'acme', '--data-dir', dataDir])
  const run = runner({}, '--data-dir', dataDir)
  const refused = await run('create', receiver.url)
  expect([refused.exitCode, refused.stderr]).toEqual([
    65,
    expect.stringContaining("'webhooks.allowed_addresses' in infer.yaml"),
  ])
  expect((await run('create', 'https://example.com', '--events', 'job.complete')).stderr).toContain('job.completed')
  expect((await run('update', 'whe_1')).exitCode).toBe(64)
})

test('a deleted organization has no webhooks', async () => {
  const env = { INFER_DATA_DIR: temporaryFolder() }
  const { organization } = json(await infer(['org', 'create', 'gone', '--json'], { env })) as {
    organization: { id: string }
  }
  await infer(['org', 'create', 'acme'], { env })
  await infer(['org', 'delete', 'gone', '--yes'], { env })
  const refused = await infer(['webhook', 'create', receiver.url, '--org', organization.id], { env })
  expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toContain(`There is no organization '${organization.id}'. Available: acme.`)
})

describe('with a server', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ models: [fakeModel('fake')], webhooks: allowed })
  })
  afterAll(() => app[Symbol.asyncDispose]())
  const remote = () => ({ INFER_URL: app.url, INFER_TOKEN: app.secret })
  const submit = async () =>
    (await (
      await app.fetch('/api/jobs', { body: { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } } })
    ).json()) as {
      id: string
    }

  test('over HTTP', () => lifecycle(runner(remote()), '/remote'))

  test('beside it: the running server uses what the command has changed', async () => {
    const run = runner({}, '--data-dir', app.dataDir)
    const { webhook } = json(
      await run('create', `${receiver.url}/beside`, '--events', 'job.completed', '--json'),
    ) as Made
    const { id } = await submit()
    const message = await receiver.next(at('/beside'))
    expect(message.body.data.id).toBe(id)
    const shown = await run('deliveries', '--status', 'delivered')
    expect(shown.stdout).toContain(message.headers['webhook-id'])
    await run('delete', webhook.id)
  })

  test('listen prints events as messages and forwards them, signed with the secret that it prints', async () => {
    const child = execa(
      process.execPath,
      [entry, 'webhook', 'listen', '--json', '--events', 'job.*', '--forward-to', `${receiver.url}/listen`],
      { env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...remote() }, extendEnv: false, reject: false },
    )
    const remarks = createInterface({ input: child.stderr })
    const [first] = await new Promise<string[]>(resolve => {
      const lines: string[] = []
      remarks.on('line', line => {
        lines.push(line)
        if (lines.length === 2) resolve(lines)
      })
    })
    const secret = /whsec_\S+/.exec(first!)![0]
    // The stream opens after the remarks: jobs are submitted until one of them is seen.
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const seen = lines.next()
    let opened = false
    void seen.then(() => (opened = true))
    await expect
      .poll(async () => {
        if (!opened) await submit()
        return opened
      })
      .toBe(true)
    const line = JSON.parse((await seen).value as string) as {
      type: string
      object_id: string
      id: string
      body: object
    }
    const message = await receiver.next(({ path, headers }) => path === '/listen' && headers['webhook-id'] === line.id)
    expect(new Webhook(secret).verify(message.text, message.headers as Record<string, string>)).toEqual(line.body)
    expect([message.body.type, message.body.data.id]).toEqual([line.type, line.object_id])
    child.kill('SIGINT')
    expect((await child).exitCode).toBe(130)
  })
})
