import { once } from 'node:events'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

/** A program that takes webhooks: it answers with the status that the test has set. */
const received: { type: string; body: string }[] = []
let status = 200
let receiver: HttpServer
let url: string

let console: TestConsole
beforeAll(async () => {
  receiver = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', text => (body += text))
    request.on('end', () => {
      received.push({ type: (JSON.parse(body) as { type: string }).type, body })
      response.writeHead(status).end('taken')
    })
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

test.each(sizes)('on %s a webhook is created, tested, and its deliveries are read and sent again', async (_, size) => {
  await using opened = await console.open('/webhooks', { size })
  opened.expectErrors(/400/)
  const { page } = opened
  const name = `backend ${size.width}`
  await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  await page.getByRole('button', { name: 'Create webhook' }).first().click()
  const form = page.getByRole('dialog', { name: 'Create webhook' })
  await form.getByLabel('Name', { exact: true }).fill(name)
  await form.getByLabel('URL').fill('ftp://example.com')
  await form.getByRole('button', { name: 'Create webhook' }).click()
  expect(await form.getByLabel('URL').getAttribute('aria-invalid')).toBe('true')
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
  await opened.expectAccessible()
  await page.keyboard.press('Escape')

  // A job that ends is delivered, and read beside the list.
  received.length = 0
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
    .waitFor()
  await page
    .getByRole('link', { name: /^job\./ })
    .first()
    .click()
  const panel = page.getByRole('region', { name: 'Delivery' })
  await panel.getByText(/"object": "event"/).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('webhook-delivery')
  received.length = 0
  await panel.getByRole('button', { name: 'Send again' }).click()
  await expect.poll(() => received.length).toBeGreaterThan(0)
  await panel.getByText('Delivered').waitFor()
  expect(page.url()).toContain('delivery=msg_')
  await page.keyboard.press('Escape')
  await panel.waitFor({ state: 'detached' })
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)

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
  await opened.expectAccessible()
})
