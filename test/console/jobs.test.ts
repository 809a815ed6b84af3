import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, seldomOnPhones, sizes, type TestConsole } from './_console.ts'

/** An engine that fails at its first request. */
let requests = 0
const engine = createServer((request, response) => {
  if (request.method !== 'POST')
    return void response.end(JSON.stringify({ object: 'list', data: [{ id: 'm', object: 'model' }] }))
  request.resume()
  response.writeHead(requests++ === 0 ? 500 : 200, { 'content-type': 'application/json' })
  const message = { role: 'assistant', content: 'At last' }
  const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  response.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
})

const phone = { ...sizes[1][1] }

let console: TestConsole
beforeAll(async () => {
  await once(engine.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`
  const flaky = { id: 'flaky', engine: 'remote', url, upstream_id: 'm', tasks: ['std/chat-completion'] }
  console = await openConsole({ models: [flaky], toys: true })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  engine.closeAllConnections()
  engine.close()
})

const image = (prompt: string, more: object = {}) =>
  console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model: 'infer/demo',
    inputs: { prompt, width: 64, height: 64 },
    ...more,
  })

test.each(sizes)('on %s a person finds an image that was made, and makes it again', async (_, size) => {
  const { id } = await image('a red boat', { metadata: { shot: '3' } })
  await console.call(`/api/jobs/${id}?wait=60`)
  await using opened = await console.open('/jobs', { size })
  const { page } = opened
  await page.getByLabel('State').selectOption('completed')
  await page.getByRole('button', { name: 'Task' }).click()
  await page.getByRole('option', { name: 'Text to image' }).click()
  // A job far down in the list is shown from its beginning.
  await page.setViewportSize({ ...size, height: 300 })
  await page.getByRole('link', { name: 'a red boat' }).first().click()
  await page.getByRole('region', { name: 'Job', exact: true }).getByRole('link', { name: 'Whole page' }).click()
  await page.getByRole('heading', { level: 1, name: 'infer/demo' }).waitFor()
  expect(await page.evaluate('scrollY + document.getElementById("main").parentElement.scrollTop')).toBe(0)
  await page.setViewportSize(size)
  await page.getByText('Completed').first().waitFor()
  const drawn = page.getByRole('img').first()
  await drawn.waitFor()
  await expect.poll(() => drawn.evaluate(node => (node as unknown as { naturalWidth: number }).naturalWidth)).toBe(64)
  await page.getByText('a red boat').first().waitFor()
  await page.getByText('shot: 3').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('job')
  await page.getByRole('button', { name: 'Run again' }).click()
  await page.getByText('The job was submitted again.').waitFor()
  await expect.poll(() => page.url()).not.toContain(id)
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test.each(seldomOnPhones)('on %s a person sees why a job waits, and cancels it', async (_, size) => {
  const later = Math.floor(Date.now() / 1_000) + 3_600
  const { id } = await image('tomorrow', { not_before: later })
  await using opened = await console.open('/jobs?status=pending', { size })
  // The page may ask for the job once more when it is deleted.
  opened.expectErrors(/410/)
  const { page } = opened
  await page.getByRole('link', { name: 'tomorrow' }).click()
  const panel = page.getByRole('region', { name: 'Job', exact: true })
  await panel.getByText('Why it waits').waitFor()
  await opened.expectAccessible()
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByText('The job is cancelled.').waitFor()
  await page.getByRole('button', { name: 'Delete job' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete job' }).click()
  await expect.poll(() => page.url()).toMatch(/\/jobs\?status=pending$/)
  expect((await console.server.fetch(`/api/jobs/${id}`)).status).toBe(410)
})

test('the list is live: a job that another client sends appears', async () => {
  await using opened = await console.open('/jobs')
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  const { id } = await image('from elsewhere')
  await page.getByRole('link', { name: 'from elsewhere' }).waitFor()
  await page.getByRole('row', { name: 'from elsewhere' }).getByText('Completed').waitFor()
  expect((await page.locator(`a[data-row="${id}"] img`).boundingBox())?.width).toBe(28)
  const rows = await page.locator('tbody tr').all()
  const heights = await Promise.all(rows.map(async row => (await row.boundingBox())?.height ?? 0))
  expect(heights.filter(height => height < 32 || height > 37)).toEqual([])
  await opened.expectAccessible()
  await opened.screenshot('jobs')
})

test('without the right to write a job offers nothing, and what a prompt says is text', async () => {
  const { id } = await image('<img src=x onerror="alert(1)"><script>alert(2)</script>')
  const token = await console.token(['user:read'])
  await using opened = await console.open(`/jobs/${id}`, { token })
  const { page } = opened
  page.on('dialog', () => expect.unreachable('A prompt was run as a script.'))
  await page.getByText('<script>alert(2)</script>').first().waitFor()
  expect(await page.getByRole('button', { name: 'Run again' }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Repeat with changes' }).count()).toBe(0)
})

test('a job that does not exist is said to be absent', async () => {
  await using opened = await console.open('/jobs/job_01J00000000000000000000000')
  opened.expectErrors(/404/)
  await opened.page.getByText('does not exist or is no longer kept').waitFor()
})

test('each attempt of a job is among its events, also when the page is opened later', async () => {
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = { task: 'std/chat-completion', model_id: 'flaky', inputs: { messages } }
  const { id } = await console.call<{ id: string }>('/api/jobs', body)
  const ended = await console.call<{ status: string; attempts: number }>(`/api/jobs/${id}?wait=60`)
  expect(ended).toMatchObject({ status: 'completed', attempts: 2 })
  await using opened = await console.open(`/jobs/${id}`)
  const events = opened.page.getByRole('region', { name: 'Events' }).getByRole('listitem')
  await expect.poll(() => events.allInnerTexts()).toHaveLength(5)
  const words = (await events.allInnerTexts()).map(text => text.split('\n')[0])
  expect(words.map(text => text!.replace(/ of \d+$/, ''))).toEqual([
    'Accepted',
    'Started Attempt 1',
    'Failed, will be tried again Attempt 1',
    'Started Attempt 2',
    'Completed Attempt 2',
  ])
  // Why the first attempt failed, beside it.
  expect(await events.nth(2).innerText()).toContain('The engine answered 500.')
})

test('a person opens a job by the id of its request, and filters between two times', async () => {
  const { id } = await image('by its id')
  await using opened = await console.open('/jobs')
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type(id.replace('job_', 'q_'))
  await page.keyboard.press('Enter')
  await page.getByText('by its id').first().waitFor()
  // Words that only begin as an id does are searched.
  await page.goto('/console/jobs')
  await page.getByRole('searchbox').fill('exec_summary')
  await page.keyboard.press('Enter')
  await expect.poll(() => page.url()).toContain('/jobs?q=exec_summary')
  await page.goto('/console/jobs?since=between&from=2020-01-01T00:00&until=2020-01-02T00:00')
  await page.getByText('No job matches these filters').waitFor()
  await page.getByLabel('Until').fill('')
  await page.getByRole('link', { name: 'by its id' }).first().waitFor()
  await opened.expectAccessible()
})

test.each(sizes)(
  'on %s a person searches prompts, goes through what is found by keys, and closes it',
  async (_, size) => {
    for (const prompt of ['a green kite', 'two green kites']) {
      const { id } = await image(prompt)
      await console.call(`/api/jobs/${id}?wait=60`)
    }
    await using opened = await console.open('/jobs', { size })
    const { page } = opened
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('GREEN kite')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.url()).toContain('q=GREEN+kite')
    const newest = page.getByRole('link', { name: 'two green kites' }).first()
    await newest.click()
    const panel = page.getByRole('region', { name: 'Job', exact: true })
    await panel.getByText('two green kites').first().waitFor()
    if (size.width > 1_000) {
      await page.keyboard.press('ArrowDown')
      await panel.getByText('a green kite', { exact: true }).first().waitFor()
      await page.keyboard.press('ArrowUp')
      await panel.getByText('two green kites').first().waitFor()
    }
    await opened.expectAccessible()
    await opened.screenshot('jobs-panel')
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await page.keyboard.press('Escape')
    await panel.waitFor({ state: 'detached' })
    await newest.waitFor()
    // A page with a filter and an open job is a link.
    await page.getByLabel('State').selectOption('failed')
    await page.getByText('Prompts are searched in background jobs').waitFor()
  },
)

test('a person cancels and deletes several jobs at once, also on a phone', async () => {
  const later = Math.floor(Date.now() / 1_000) + 3_600
  await Promise.all(['later one', 'later two'].map(prompt => image(prompt, { not_before: later })))
  await using opened = await console.open('/jobs?status=pending')
  const { page } = opened
  await page.getByLabel('Choose later one').check()
  await page.getByLabel('Choose later two').check()
  await opened.expectAccessible()
  await page.getByRole('button', { name: 'Cancel 2' }).click()
  await page.getByText('2 jobs are cancelled.').waitFor()
  await page.setViewportSize(phone)
  await page.getByLabel('State').selectOption('cancelled')
  await page.getByLabel('Choose all on this page').check()
  await page.getByRole('button', { name: /^Delete \d+/ }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Delete \d+/ })
    .click()
  await page.getByText('No job matches these filters').waitFor()
  expect((await console.call<{ jobs: object[] }>('/api/jobs?status=cancelled')).jobs).toEqual([])
})

test('two jobs are compared, also on a phone', async () => {
  for (const prompt of ['a small house', 'a large house']) {
    const { id } = await image(prompt)
    await console.call(`/api/jobs/${id}?wait=60`)
  }
  await using opened = await console.open('/jobs?q=house')
  const { page } = opened
  await page.getByLabel('Choose a small house').first().check()
  await page.getByLabel('Choose a large house').first().check()
  await page.getByRole('link', { name: 'Compare' }).click()
  await page.getByRole('heading', { level: 1, name: 'Compare jobs' }).waitFor()
  await page.getByRole('region', { name: 'Differences of the inputs' }).getByText('prompt').first().waitFor()
  expect(
    await page
      .getByRole('region', { name: /result$/ })
      .getByRole('img')
      .count(),
  ).toBe(2)
  await opened.expectAccessible()
  await opened.screenshot('jobs-compared')
  await page.setViewportSize(phone)
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('of a job without a result the comparison says why', async () => {
  const [{ id: first }, { id: second }] = [await image('made'), await image('never', { not_before: 4_000_000_000 })]
  await console.call(`/api/jobs/${first}?wait=60`)
  await console.call(`/api/jobs/${second}/cancel`, {})
  await using opened = await console.open(`/jobs/compare?first=${first}&second=${second}`)
  const result = opened.page.getByRole('region', { name: 'Second result' })
  await result.getByText('It ended without a result.').waitFor()
})

test('after a failure in the middle the list shows what was deleted', async () => {
  const later = { not_before: 4_000_000_000 }
  const [{ id: gone }, { id: kept }] = [await image('deleted elsewhere', later), await image('deleted here', later)]
  await console.call(`/api/jobs/${gone}/cancel`, {})
  await console.call(`/api/jobs/${kept}/cancel`, {})
  await using opened = await console.open('/jobs?status=cancelled')
  opened.expectErrors(/410/)
  const { page } = opened
  await page.getByLabel('Choose deleted elsewhere').check()
  await page.getByLabel('Choose deleted here').check()
  const error = { error: { message: 'It was removed.', code: 'gone' } }
  await page.route(`**/api/jobs/${gone}`, route =>
    route.request().method() === 'DELETE' ? route.fulfill({ status: 410, json: error }) : route.continue(),
  )
  await page.getByRole('button', { name: 'Delete 2' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Delete 2' }).click()
  await page.getByText('Done for 1 of 2 jobs.').waitFor()
  await page.getByRole('row', { name: 'deleted here' }).waitFor({ state: 'detached' })
})

test('the owner sees jobs of all organizations, also on a phone, and others see no such choice', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/organizations', { name: 'acme' })
  const path = `/api/organizations/${organization.id}/tokens`
  const scopes = ['user:read', 'user:write', 'admin:read']
  const made = await console.call<{ secret: string }>(path, { name: 'theirs', scopes })
  const inputs = { prompt: 'their secret', width: 64, height: 64 }
  const body = { task: 'slug/text-to-image', model: 'infer/demo', inputs }
  const sent = await console.server.fetch('/api/jobs', { body, token: made.secret })
  expect(sent.status).toBe(202)
  await using opened = await console.open('/jobs')
  const { page } = opened
  // Without a choice the list has the own organization, and not any.
  await page.getByLabel('Organization').getByText('Your organization').waitFor()
  await opened.choose('Organization', 'All organizations')
  const row = page.getByRole('row', { name: 'Text to image' }).first()
  await row.getByText('acme').waitFor()
  await opened.expectAccessible()
  await page.setViewportSize(phone)
  await row.getByRole('link').click()
  await page.getByText('This job belongs to another organization').waitFor()
  expect(await page.getByText('their secret').count()).toBe(0)
  await opened.expectAccessible()
  await using other = await console.open('/jobs', { token: made.secret })
  await other.page.getByRole('link', { name: 'their secret' }).waitFor()
  expect(await other.page.getByLabel('Organization').count()).toBe(0)
})

test('of more than a hundred tokens the oldest is found by its name, and jobs have the names of theirs', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const path = `/api/organizations/${organization.id}/tokens`
  const { secret } = await console.call<{ secret: string }>(path, { name: 'night robot' })
  const inputs = { prompt: 'made at night', width: 64, height: 64 }
  const body = { task: 'slug/text-to-image', model: 'infer/demo', inputs }
  expect((await console.server.fetch('/api/jobs', { body, token: secret })).status).toBe(202)
  await Promise.all(Array.from({ length: 101 }, (_, at) => console.call(path, { name: `laptop ${at}` })))
  await using opened = await console.open('/jobs')
  const { page } = opened
  const row = page.getByRole('row', { name: 'made at night' })
  await row.getByText('night robot').waitFor()
  await page.getByLabel('Token', { exact: true }).click()
  await page.getByText('100 are shown. Type to find the others.').waitFor()
  await opened.expectAccessible()
  await page.keyboard.press('Escape')
  await opened.choose('Token', 'night robot')
  await page.waitForURL(/token_id=tok_/)
  await row.getByRole('link').click()
  await page.getByRole('region', { name: 'Job' }).getByText('night robot').waitFor()
  await page.reload()
  await page.getByLabel('Token', { exact: true }).getByText('night robot').waitFor()
})
