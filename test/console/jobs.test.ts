import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

const image = (prompt: string, more: object = {}) =>
  console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model: 'infer/demo',
    inputs: { prompt, width: 64, height: 64 },
    ...more,
  })

test.each(sizes)('on %s a person finds an image that was made, and makes it again', async (_, size) => {
  const { id } = await image('a red boat', { metadata: { shot: '3' } })
  await using opened = await console.open('/jobs', { size })
  const { page } = opened
  await page.getByLabel('State').selectOption('completed')
  await page.getByLabel('Task').selectOption('slug/text-to-image')
  await page.getByRole('link', { name: id }).click()
  await page.getByRole('heading', { level: 1, name: 'infer/demo' }).waitFor()
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

test.each(sizes)('on %s a person sees why a job waits, and cancels it', async (_, size) => {
  const later = Math.floor(Date.now() / 1_000) + 3_600
  const { id } = await image('tomorrow', { not_before: later })
  await using opened = await console.open('/jobs?status=pending', { size })
  const { page } = opened
  await page.getByRole('link', { name: id }).click()
  await page.getByText('Why it waits').waitFor()
  await opened.expectAccessible()
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByText('The job is cancelled.').waitFor()
  await page.getByRole('button', { name: 'Delete job' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete job' }).click()
  await expect.poll(() => page.url()).toMatch(/\/jobs$/)
  expect((await console.server.fetch(`/api/jobs/${id}`)).status).toBe(410)
})

test('the list is live: a job that another client sends appears', async () => {
  await using opened = await console.open('/jobs')
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  const { id } = await image('from elsewhere')
  await page.getByRole('link', { name: id }).waitFor()
  await page.getByRole('row', { name: id }).getByText('Completed').waitFor()
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
