import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)('on %s a person signs in with a token, opens every page and signs out', async (_, size) => {
  await using opened = await console.open('/', { size, token: null })
  const { page } = opened
  opened.expectErrors(/401/)
  await page.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('sign-in')
  await page.getByLabel('API token').fill('sk-infer-wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('Incorrect API key provided').waitFor()
  await page.getByLabel('API token').fill(console.secret)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const narrow = size.width < 768
  for (const name of ['Playground', 'Models', 'Jobs', 'Workflows', 'Executions', 'Library', 'Usage', 'Overview']) {
    if (narrow) await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }
  await opened.expectAccessible()
  if (narrow) await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('shortcuts go to pages and are listed', async () => {
  await using opened = await console.open('/')
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('j')
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  await page.keyboard.press('?')
  const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await list.getByText('Go to Models').waitFor()
  await opened.expectAccessible()
  await page.keyboard.press('Escape')
  await list.waitFor({ state: 'detached' })
})

test('a page that the token may not use is not offered, and refused by its address', async () => {
  const token = await console.token(['user:read'])
  await using opened = await console.open('/system', { token })
  const { page } = opened
  await page.getByText('lacks the scope admin:read').waitFor()
  expect(await page.getByRole('link', { name: 'System' }).count()).toBe(0)
})
