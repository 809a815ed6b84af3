import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

/** A program that takes webhooks: it answers with the status that the test has set, and keeps the ids of the messages. */
const received: unknown[] = []
let status = 200
let receiver: HttpServer
let url: string

let console: TestConsole
beforeAll(async () => {
  receiver = createServer((request, response) => {
    received.push(request.headers['webhook-id'])
    request.resume().on('end', () => response.writeHead(status).end('taken'))
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`
  console = await openConsole({ webhooks: { allowed_addresses: ['127.0.0.1'] } })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  receiver?.closeAllConnections()
  receiver?.close()
})

test('a webhook is created, tested, and its deliveries are read and sent again', async () => {
  await using opened = await console.open('/webhooks')
  opened.expectErrors(/400/)
  const { page } = opened
  const name = 'backend'
  await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  await page.getByRole('button', { name: 'Create webhook' }).first().click()
  const form = page.getByRole('dialog', { name: 'Create webhook' })
  await form.getByLabel('Name', { exact: true }).fill(name)
  await form.getByLabel('URL').fill('ftp://example.com')
  await form.getByRole('button', { name: 'Create webhook' }).click()
  await expect.poll(() => form.getByLabel('URL').getAttribute('aria-invalid')).toBe('true')
  await form.getByLabel('URL').fill(url)
  await form.getByLabel('All of job').check()
  expect(await form.getByLabel('completed').first().isDisabled()).toBe(true)
  await opened.expectAccessible()
  await opened.screenshot('webhook-create')
  await form.getByRole('button', { name: 'Create webhook' }).click()
  const secret = page.getByRole('dialog', { name: `Secret of ${name}` })
  const value = await secret.getByLabel('Secret', { exact: true }).inputValue()
  expect(value).toMatch(/^whsec_/)
  await secret.getByRole('button', { name: 'I have copied it' }).click()
  expect(await page.content()).not.toContain(value)

  await page.getByRole('heading', { level: 1, name }).waitFor()
  await page.getByRole('button', { name: 'Send test' }).click()
  const trial = page.getByRole('dialog', { name: `Send a test to ${name}` })
  await trial.getByRole('button', { name: 'Send test' }).click()
  await trial.getByText(/The URL answered 200 after/).waitFor()
  await page.keyboard.press('Escape')

  // A job that ends is delivered, and read beside the list.
  status = 410
  await console.call('/api/jobs', {
    task: 'std/embeddings',
    model_id: 'infer/tiny-embed',
    inputs: { input: 'a cat' },
  })
  await page.getByText('Disabled: the URL is gone').waitFor()
  status = 200
  await page.getByRole('button', { name: 'Enable' }).click()
  await page.getByRole('button', { name: 'Disable' }).waitFor()
  await page
    .getByRole('link', { name: /^job\./ })
    .first()
    .click()
  const panel = page.getByRole('region', { name: 'Delivery' })
  await panel.getByText(/"object": "event"/).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('webhook-delivery')
  const message = new URL(page.url()).searchParams.get('delivery')
  expect(message).toMatch(/^msg_/)
  received.length = 0
  await panel.getByRole('button', { name: 'Send again' }).click()
  await expect.poll(() => received).toContain(message)
  await panel.getByText('Delivered').waitFor()
  await page.keyboard.press('Escape')
  await panel.waitFor({ state: 'detached' })

  await page.getByRole('button', { name: 'Delete' }).click()
  await page
    .getByRole('dialog', { name: `Delete ${name}?` })
    .getByRole('button', { name: 'Delete webhook' })
    .click()
  await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  await page.getByText('No endpoint yet').waitFor()
  await page.getByRole('tab', { name: 'Secret of requests' }).click()
  await page.getByRole('button', { name: 'Show secret' }).click()
  expect(await page.getByLabel('Secret', { exact: true }).inputValue()).toMatch(/^whsec_/)
})

test('on a phone a delivery of a webhook is read in the place of the list', async () => {
  const { webhook } = await console.call<{ webhook: { id: string } }>('/api/webhooks', {
    name: 'phone',
    url,
    event_types: ['job.completed'],
  })
  await using opened = await console.open(`/webhooks/${webhook.id}`, { size: sizes[1][1] })
  const { page } = opened
  await page.getByText('No deliveries').waitFor()
  await console.call('/api/jobs', { task: 'std/embeddings', model_id: 'infer/tiny-embed', inputs: { input: 'a dog' } })
  await page.getByRole('link', { name: 'job.completed' }).first().click()
  await page
    .getByRole('region', { name: 'Delivery' })
    .getByText(/"object": "event"/)
    .waitFor()
  expect(await page.getByRole('table', { name: 'Deliveries' }).isVisible()).toBe(false)
  await opened.expectAccessible()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await console.call(`/api/webhooks/${webhook.id}`, undefined, 'DELETE')
})

const line = (id: string, body: object) =>
  JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/embeddings', body: { model: 'infer/tiny-embed', ...body } })

test('a batch is created from a file, and its results are downloaded', async () => {
  await using opened = await console.open('/batches')
  const { page } = opened
  await page.getByText('No batches yet').waitFor()
  await page.getByRole('button', { name: 'Create batch' }).first().click()
  const form = page.getByRole('dialog', { name: 'Create batch' })
  await form.getByRole('button', { name: 'Create batch' }).click()
  await form.getByText('Choose a file.').waitFor()
  const text = `${line('first', { input: 'a cat' })}\n${line('second', { input: 7, dimensions: -1 })}\n`
  await form
    .getByLabel('File with the requests')
    .setInputFiles({ name: 'questions.jsonl', mimeType: 'application/jsonl', buffer: Buffer.from(text) })
  await opened.expectAccessible()
  await form.getByRole('button', { name: 'Create batch' }).click()
  const panel = page.getByRole('region', { name: 'Batch' })
  await panel.getByText('Completed').waitFor()
  await panel.getByText('2 of 2').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('batch')
  const saved = page.waitForEvent('download')
  await panel.getByRole('button', { name: 'Download results' }).click()
  const results = readFileSync(await (await saved).path(), 'utf8')
  expect((JSON.parse(results) as { custom_id: string }).custom_id).toBe('first')
  const failed = page.waitForEvent('download')
  await panel.getByRole('button', { name: 'Download errors' }).click()
  expect(readFileSync(await (await failed).path(), 'utf8')).toContain('"custom_id":"second"')

  // A file with a wrong line is refused whole, and the line is named.
  await page.getByRole('button', { name: 'Create batch' }).first().click()
  await form.getByLabel('File with the requests').setInputFiles({
    name: 'wrong.jsonl',
    mimeType: 'application/jsonl',
    buffer: Buffer.from(`${line('a', { input: 'x' })}\nno line\n`),
  })
  await form.getByRole('button', { name: 'Create batch' }).click()
  await panel.getByText(/^Line 2: /).waitFor()
  await page.keyboard.press('Escape')
  await panel.waitFor({ state: 'detached' })
  await page.keyboard.press('Enter')
  await panel.getByText(/^Line 2: /).waitFor()
  await page.keyboard.press('ArrowDown')
  await panel.getByText('2 of 2').waitFor()
})

test('on a phone files are uploaded, used in a batch and deleted', async () => {
  await using opened = await console.open('/files?purpose=vision', { size: sizes[1][1] })
  const { page } = opened
  await page.getByText('No file has this purpose').waitFor()
  await page.getByRole('button', { name: 'Upload files' }).click()
  const form = page.getByRole('dialog', { name: 'Upload files' })
  await form.getByLabel('Files', { exact: true }).setInputFiles(
    ['one', 'two'].map(name => ({
      name: `${name}.jsonl`,
      mimeType: 'application/jsonl',
      buffer: Buffer.from(line(name, { input: name })),
    })),
  )
  await form.getByLabel('Purpose').selectOption('Batch')
  await form.getByLabel('Delete after').selectOption('7 days')
  await form.getByRole('button', { name: 'Upload' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByLabel('Purpose').selectOption('Batch')
  await page.getByRole('link', { name: 'one.jsonl' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('files')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await page.getByRole('link', { name: 'two.jsonl' }).click()
  const panel = page.getByRole('region', { name: 'File' })
  await panel.getByText(/^in [67]d/).waitFor()
  await opened.expectAccessible()
  const saved = page.waitForEvent('download')
  await panel.getByRole('button', { name: 'Download' }).click()
  expect((await saved).suggestedFilename()).toBe('two.jsonl')
  await panel.getByRole('link', { name: 'Create batch' }).click()
  const create = page.getByRole('dialog', { name: 'Create batch' })
  await create
    .getByLabel('File with the requests')
    .getByText(/^two\.jsonl \(file-/)
    .waitFor()
  await page.goBack()
  await panel.getByRole('button', { name: 'Delete' }).click()
  const ask = page.getByRole('dialog', { name: 'Delete two.jsonl?' })
  await ask.getByRole('button', { name: 'Delete file' }).click()
  await panel.waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'two.jsonl' }).waitFor({ state: 'detached' })
})

test.each(sizes)('on %s an administrator adds a user with a token, and finds it in the audit log', async (_, size) => {
  await using opened = await console.open('/organizations', { size })
  const { page } = opened
  const name = `Ada ${size.width}`
  await page.getByRole('link', { name: 'default' }).click()
  await page.getByRole('tab', { name: 'Users' }).click()
  await page.getByRole('button', { name: 'Add user' }).click()
  const form = page.getByRole('dialog', { name: 'Add user' })
  await form.getByLabel('Name', { exact: true }).fill(name)
  await form.getByLabel('E-mail address').fill(`ada${size.width}@example.com`)
  await form.getByLabel('Role').selectOption('Member: reads and runs work')
  await opened.expectAccessible()
  await form.getByRole('button', { name: 'Add user' }).click()
  const row = page.getByRole('row').filter({ hasText: name })
  await row.getByRole('button', { name: `Create token: ${name}` }).click()
  const token = page.getByRole('dialog', { name: `Create token for ${name}` })
  await token.getByLabel('Name', { exact: true }).fill(`laptop ${size.width}`)
  expect(await token.getByLabel('admin:read').count()).toBe(0)
  await token.getByRole('button', { name: 'Create token' }).click()
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await row.getByRole('cell', { name: '1', exact: true }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('users')
  await row.getByRole('button', { name: `Change: ${name}` }).click()
  const change = page.getByRole('dialog', { name: `Change ${name}` })
  await change.getByLabel('Role').selectOption('Viewer: reads')
  await change.getByRole('button', { name: 'Save changes' }).click()
  await page.getByText('1 token lost scopes.').waitFor()
  await row.getByText('Viewer').waitFor()
  await row.getByRole('button', { name: `Remove: ${name}` }).click()
  const remove = page.getByRole('dialog', { name: `Remove ${name}?` })
  await remove.getByRole('button', { name: 'Remove user' }).click()
  await row.waitFor({ state: 'detached' })
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)

  // Who was removed has no name that can be read.
  opened.expectErrors(/404/)
  await page.getByRole('link', { name: 'Audit log' }).last().click()
  await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor()
  await page.getByLabel('Done').selectOption('User changed')
  await page.getByRole('link', { name: 'User changed' }).first().click()
  const panel = page.getByRole('region', { name: 'Entry' })
  await panel.getByText('member', { exact: true }).waitFor()
  await panel.getByText('viewer', { exact: true }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('audit')
  expect(page.url()).toContain('action=user.updated')
  await panel.getByRole('button', { name: 'All entries about it' }).click()
  await page.getByRole('link', { name: 'User removed' }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('what a token may not do is not offered', async () => {
  await using reader = await console.open('/batches', { token: await console.token(['user:read']) })
  await reader.page.getByRole('heading', { level: 1, name: 'Batches' }).waitFor()
  expect(await reader.page.getByRole('button', { name: 'Create batch' }).count()).toBe(0)
  for (const name of ['Webhooks', 'Audit log']) expect(await reader.page.getByRole('link', { name }).count()).toBe(0)
  await reader.page.goto('/console/audit')
  await reader.page.getByText('lacks the scope admin:read').waitFor()
  await using auditor = await console.open('/webhooks', { token: await console.token(['user:read', 'admin:read']) })
  await auditor.page.getByText('No endpoint yet').waitFor()
  expect(await auditor.page.getByRole('button', { name: 'Create webhook' }).count()).toBe(0)
})
