import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole({ limits: { depth: 50 } })
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)('on %s a person checks the machine and finds where a setting comes from', async (_, size) => {
  await using opened = await console.open('/system', { size })
  const { page } = opened
  await page.getByRole('button', { name: 'Check this machine' }).click()
  await page.getByText('The checks run.').waitFor()
  await page.getByText('structure and ledger are intact').waitFor({ timeout: 60_000 })
  await page.getByText(/^(Everything|\d+ problem)/).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('system')
  await page.getByRole('tab', { name: 'Configuration' }).click()
  await page.getByText('The configuration file is').waitFor()
  await page.getByLabel('Search settings').fill('nesting')
  const setting = page.getByRole('region', { name: 'Limits and timeouts' }).getByText('limits.depth')
  await setting.waitFor()
  await page.getByText('File', { exact: true }).waitFor()
  await opened.expectAccessible()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await page.getByRole('tab', { name: 'Configuration' }).press('ArrowRight')
  await page.getByRole('log', { name: 'Log of the server' }).getByText('Ready', { exact: false }).first().waitFor()
  await page.getByRole('tab', { name: 'Backups' }).click()
  await page.getByText('infer backup /backups/infer.db').waitFor()
  await page.getByRole('tab', { name: 'Licences' }).click()
  await page.getByLabel('Search works').fill('better-sqlite3')
  await page.getByText('better-sqlite3').click()
  await page.getByText('Permission is hereby granted').waitFor()
  await opened.expectAccessible()
})
