import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

const model = 'infer/tiny-chat'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)('on %s a person finds a model, tests it, and reads its log and settings', async (_, size) => {
  await using opened = await console.open('/models', { size })
  const { page } = opened
  const table = page.getByRole('table', { name: 'Configured' })
  await table.getByRole('link', { name: 'infer/tiny-embed' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('models')
  await page.keyboard.press('/')
  await page.keyboard.type('chat')
  await expect.poll(() => table.getByRole('link').count()).toBe(1)
  await table.getByRole('link', { name: model }).click()
  await page.getByRole('heading', { level: 1, name: model }).waitFor()
  await page.getByRole('button', { name: `Test ${model}` }).click()
  await page.getByText(/It answered in .*: Hello!/).waitFor()
  await page.getByText('2,048 tokens').waitFor()
  await page.getByRole('table', { name: 'Engines' }).getByText('Ready').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('model')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await page.getByRole('tab', { name: 'Log' }).click()
  const log = page.getByRole('log')
  await log.getByText('The model is sized').first().waitFor()
  // Further lines come live.
  const starts = await log.getByText('Engine ready').count()
  await page.getByRole('button', { name: `Unload ${model}` }).click()
  await page.getByRole('button', { name: `Load ${model}` }).click()
  await expect.poll(() => log.getByText('Engine ready').count(), { timeout: 10_000 }).toBe(starts + 1)
  await page.getByLabel('Filter lines').fill('nothing has this text')
  await log.getByText('No line has this text.').waitFor()
  await opened.expectAccessible()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByRole('table', { name: 'Settings' }).getByText('context_length').waitFor()
  await opened.expectAccessible()
})

test('a model that does not exist is said so, with its name', async () => {
  await using opened = await console.open('/models/details/nobody/nothing')
  await opened.page.getByText('There is no model nobody/nothing here').waitFor()
})

test('a token of readers sees state and price, and no engine, log or settings', async () => {
  const token = await console.token(['user:read'])
  await using opened = await console.open(`/models/details/${model}`, { token })
  const { page } = opened
  await page.getByText('Engines, settings and the log are for tokens').waitFor()
  expect(await page.getByRole('tab').allTextContents()).toEqual(['About'])
  expect(await page.getByRole('button', { name: /^(Load|Unload|Test) / }).count()).toBe(0)
})
