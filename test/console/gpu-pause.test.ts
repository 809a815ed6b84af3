import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, seldomOnPhones, type TestConsole } from './_console.ts'

const model = 'infer/tiny-chat'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(seldomOnPhones)('on %s a person gives a device away, and takes it back', async (_, size) => {
  await console.call(`/api/models/${model}/load?wait=30`, {})
  await using opened = await console.open('/', { size })
  const { page } = opened
  await page
    .getByRole('list', { name: /^Engines on/ })
    .getByText(model)
    .waitFor()
  await page.getByLabel('How long cpu is paused').selectOption('2 hours')
  await page.getByRole('button', { name: /^Pause/ }).click()
  await page.getByText('No engine is loaded here.').waitFor()
  await page.getByRole('button', { name: /^Resume/ }).waitFor()
  await page.getByText(/^cpu is paused until [A-Z][a-z]{2} \d+, 20\d\d, \d+:\d\d:\d\d.[AP]M\.$/).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('gpu-pause')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await page.getByRole('button', { name: /^Resume/ }).click()
  await page.getByRole('button', { name: /^Pause/ }).waitFor()
})
