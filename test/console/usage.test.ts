import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
  await console.call('/std/v1/embeddings', { model: 'infer/tiny-embed', input: ['a cat', 'a dog'] })
  await console.call('/std/v1/rerank', { model: 'infer/tiny-rerank', query: 'cat', documents: ['cat', 'dog'] })
  await console.call('/api/organizations', { name: 'research' })
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)('on %s a person sees what was used by model, task, token and organization', async (_, size) => {
  await using opened = await console.open('/usage', { size })
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
  const byModel = page.getByRole('table', { name: 'Usage by model' })
  await byModel.getByRole('row').filter({ hasText: 'infer/tiny-embed' }).getByRole('cell').nth(1).waitFor()
  await byModel.getByRole('row').filter({ hasText: 'infer/tiny-rerank' }).waitFor()
  await byModel.getByRole('row').filter({ hasText: 'Total' }).waitFor()
  await page.getByText('Spending this month').first().waitFor()
  await opened.expectAccessible()
  await opened.screenshot('usage')
  await page.getByLabel('By', { exact: true }).selectOption('Token')
  await page.getByRole('table', { name: 'Usage by token' }).getByText('root').waitFor()
  await page.getByLabel('Period').selectOption('Last 24 hours')
  await page.getByRole('img', { name: 'Requests: Last 24 hours' }).waitFor()
  expect(page.url()).toMatch(/by=token.*period=day/)
  await page.getByLabel('By', { exact: true }).selectOption('Organization')
  const all = page.getByRole('table', { name: 'Usage by organization' })
  await all.getByRole('row').filter({ hasText: 'research' }).waitFor()
  await opened.expectAccessible()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('the report is downloaded as CSV', async () => {
  await using opened = await console.open('/usage?by=task')
  const saved = opened.page.waitForEvent('download')
  await opened.page.getByRole('button', { name: 'Download CSV' }).click()
  const download = await saved
  expect(download.suggestedFilename()).toMatch(/^usage-org_\w+\.csv$/)
  const text = readFileSync(await download.path(), 'utf8')
  expect(text.split('\r\n')[0]).toMatch(/^start_time,end_time,task,requests,/)
  expect(text).toContain('std/embeddings')
})

test('the owner of the machine sets a limit of another organization', async () => {
  const { organizations } = await console.call<{ organizations: { id: string; name: string }[] }>('/api/organizations')
  const { id } = organizations.find(({ name }) => name === 'research')!
  await using opened = await console.open(`/usage?organization=${id}`)
  const { page } = opened
  await page.getByText('Nothing was used in this period').waitFor()
  // What is used of the own limits would look like that of the organization.
  await page.getByText('0 USD, no limit').waitFor()
  expect(await page.getByText('Spending this month').count()).toBe(1)
  await page.getByRole('button', { name: 'Change limits' }).click()
  const dialog = page.getByRole('dialog', { name: 'Change limits of research' })
  await dialog.getByLabel('Submissions per minute').fill('7')
  await dialog.getByLabel('Spending per month').fill('12.5')
  await opened.expectAccessible()
  await dialog.getByRole('button', { name: 'Save limits' }).click()
  await page.getByText('12.50 USD', { exact: true }).waitFor()
  await page.getByText('0 USD of 12.50 USD · 0 %').waitFor()
  const { limits } = await console.call<{ limits: object }>(`/api/organizations/${id}/limits`)
  expect(limits).toMatchObject({ job_submissions_per_minute: 7, monthly_spend_limit: 12.5, pending_jobs: null })
})

test('without admin:read there are the own limits, and a word about the rest', async () => {
  await using opened = await console.open('/usage', { token: await console.token(['user:read']) })
  const { page } = opened
  await page.getByText('needs a token with the scope admin:read').waitFor()
  await page.getByText('Spending this month').first().waitFor()
  expect(await page.getByRole('button', { name: 'Download CSV' }).count()).toBe(0)
  expect(await page.getByLabel('Period').count()).toBe(0)
})

test('more than a hundred organizations are all found, and their usage is read a hundred at a time', async () => {
  const names = Array.from({ length: 100 }, (_, at) => `team ${String(at).padStart(3, '0')}`)
  // The list of the server has the newest first: those that stand last in it are the oldest.
  await Promise.all(names.map(name => console.call('/api/organizations', { name })))
  await using opened = await console.open('/usage')
  const { page } = opened
  await opened.choose('Organization', 'research')
  await page.getByRole('heading', { name: 'Limits of research' }).waitFor()
  await page.getByLabel('Organization', { exact: true }).click()
  await page.getByText('100 of 102 are shown. Type to find the others.').waitFor()
  await opened.expectAccessible()
  await page.keyboard.press('Escape')
  await page.getByLabel('By', { exact: true }).selectOption('Organization')
  await page.getByText('100 of 102 organizations, by name.').waitFor()
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.getByRole('table', { name: 'Usage by organization' }).getByText('team 099').waitFor()
  expect(await page.getByText('organizations, by name').count()).toBe(0)
})
