import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test('a request of the reference uses the session of the console, and is refused without one', async () => {
  await using opened = await console.open('/')
  const { page, context } = opened
  // The reference resolves what the schemas of Zod name within themselves only in part.
  opened.expectErrors(/\$ref-value/, /40[13]/)
  await page.goto('/docs#tag/organizations-and-tokens/GET/api/me')
  const trial = page.getByRole('button', { name: /Test Request.*\/api\/me/ })
  await trial.click()
  const send = async () => {
    const [answer] = await Promise.all([
      page.waitForResponse(/\/api\/me$/),
      page.getByRole('button', { name: /^Send/ }).first().click(),
    ])
    return [answer.status(), answer.request().headers()['authorization']]
  }
  expect(await send()).toEqual([200, undefined])
  await context.clearCookies()
  expect(await send()).toEqual([401, undefined])
})
