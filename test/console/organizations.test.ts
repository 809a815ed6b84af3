import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, sizes, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test.each(sizes)('on %s an administrator creates a token, cuts its budget, rotates and revokes it', async (_, size) => {
  await using opened = await console.open('/organizations', { size })
  const { page } = opened
  const name = `laptop ${size.width}`
  await page.getByRole('heading', { level: 1, name: 'Organizations and tokens' }).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('organizations')
  await page.getByRole('link', { name: 'default' }).click()
  await page.getByRole('heading', { level: 1, name: 'default' }).waitFor()

  await page.getByRole('button', { name: 'Create token' }).click()
  const form = page.getByRole('dialog', { name: 'Create token for default' })
  await form.getByLabel('Name', { exact: true }).fill(name)
  await form.getByLabel('Spending per month').fill('25')
  for (const scope of ['user:read', 'user:write']) await form.getByLabel(scope).uncheck()
  await form.getByRole('button', { name: 'Create token' }).click()
  await form.getByText('Choose at least one scope.').waitFor()
  await form.getByLabel('user:read').check()
  await opened.expectAccessible()
  await opened.screenshot('token-create')
  await form.getByRole('button', { name: 'Create token' }).click()
  const secret = page.getByRole('dialog', { name: `Secret of ${name}` })
  const value = await secret.getByLabel('Secret', { exact: true }).inputValue()
  expect(value).toMatch(/^sk-infer-\w{12}-\w{49}$/)
  expect((await console.server.fetch('/api/me', { token: value })).status).toBe(200)
  await opened.expectAccessible()
  await opened.screenshot('token-secret')
  await secret.getByRole('button', { name: 'I have copied it' }).click()
  expect(await page.content()).not.toContain(value)

  const row = page.getByRole('row').filter({ hasText: name })
  await row.getByText('25.00 USD per month').waitFor()
  // It has spent nothing yet.
  await row.getByText('0 USD · 0 %', { exact: true }).waitFor()
  await opened.screenshot('tokens')
  await page.getByRole('button', { name: `Change ${name}` }).click()
  const change = page.getByRole('dialog', { name: `Change ${name}` })
  await change.getByLabel('Spending per month').fill('5')
  await change.getByRole('button', { name: 'Save changes' }).click()
  await row.getByText('5.00 USD per month', { exact: true }).waitFor()
  expect(((await (await console.server.fetch('/api/me', { token: value })).json()) as Me).token).toMatchObject({
    monthly_spend_limit: 5,
  })

  await page.getByRole('button', { name: `Rotate ${name}` }).click()
  const rotate = page.getByRole('dialog', { name: `Rotate ${name}` })
  await rotate.getByRole('button', { name: 'Create new secret' }).click()
  await secret.getByRole('button', { name: 'I have copied it' }).click()
  expect((await console.server.fetch('/api/me', { token: value })).status).toBe(401)

  await page.getByRole('button', { name: `Revoke ${name}` }).click()
  const revoke = page.getByRole('dialog', { name: `Revoke ${name}?` })
  await opened.expectAccessible()
  await revoke.getByRole('button', { name: 'Revoke token' }).click()
  await revoke.waitFor({ state: 'detached' })
  await row.waitFor({ state: 'detached' })
  await page.getByLabel('Status').selectOption('Revoked')
  await row.getByText('Revoked').waitFor()
  expect(page.url()).toContain('status=revoked')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

interface Me {
  token: object
}

test('a new organization gets a token, is suspended and resumed', async () => {
  await using opened = await console.open('/organizations')
  const { page } = opened
  await page.getByRole('button', { name: 'Create organization' }).click()
  const form = page.getByRole('dialog', { name: 'Create organization' })
  await form.getByLabel('Name').fill('default')
  await form.getByRole('button', { name: 'Create organization' }).click()
  opened.expectErrors(/409/)
  await expect.poll(() => form.getByLabel('Name').getAttribute('aria-invalid')).toBe('true')
  await form.getByText(/'default'/).waitFor()
  await form.getByLabel('Name').fill('research')
  await form.getByRole('button', { name: 'Create organization' }).click()
  await page.getByRole('heading', { level: 1, name: 'research' }).waitFor()
  await page.getByText('There is no active token').waitFor()
  await page.getByRole('button', { name: 'Suspend organization' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend organization' }).click()
  await page.getByText('The organization is suspended: its tokens are refused').waitFor()
  await page.getByRole('button', { name: 'Resume organization' }).click()
  await page.getByRole('button', { name: 'Suspend organization' }).waitFor()
})

test('whoever may only read sees tokens and no actions, and a name of a token is text', async () => {
  const name = '<img src=x onerror="document.title=1">'
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  await console.call(`/api/organizations/${organization.id}/tokens`, { name, scopes: ['user:read'] })
  const token = await console.token(['user:read', 'admin:read'])
  await using opened = await console.open(`/organizations/${organization.id}`, { token })
  const { page } = opened
  await page.getByText(name).waitFor()
  expect(await page.getByRole('button', { name: /Create|Revoke|Rotate|Change/ }).count()).toBe(0)
})

test('a token is restricted to hours, and to none again', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const path = `/api/organizations/${organization.id}/tokens`
  const { token } = await console.call<{ token: { id: string } }>(path, { name: 'nightly', scopes: ['user:read'] })
  const hours = async () => {
    const { tokens } = await console.call<{ tokens: { id: string; allowed_hours: object | null }[] }>(path)
    return tokens.find(({ id }) => id === token.id)!.allowed_hours
  }
  await using opened = await console.open(`/organizations/${organization.id}`)
  const { page } = opened
  const change = async (from: string, to: string) => {
    await page.getByRole('button', { name: 'Change nightly' }).click()
    const form = page.getByRole('dialog', { name: 'Change nightly' })
    await form.getByText('More limits').click()
    await form.getByLabel('From').fill(from)
    await form.getByLabel('Until').fill(to)
    await form.getByLabel('Sun').uncheck()
    await form.getByLabel('Time zone').fill('Europe/Oslo')
    await opened.expectAccessible()
    await form.getByRole('button', { name: 'Save changes' }).click()
    await form.waitFor({ state: 'detached' })
  }
  await change('20:00', '23:00')
  const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat']
  expect(await hours()).toEqual({ timezone: 'Europe/Oslo', ranges: [{ days, from: '20:00', to: '23:00' }] })
  await page.getByRole('row').filter({ hasText: 'nightly' }).getByText('certain hours only').waitFor()
  await change('', '')
  expect(await hours()).toBeNull()
})

test('a token with an admin scope expires in 90 days, and a secret is shown until it is copied', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const token = await console.token(['user:read', 'user:write', 'admin:read', 'admin:write'])
  await using opened = await console.open(`/organizations/${organization.id}`, { token })
  const { page } = opened
  await page.getByRole('button', { name: 'Create token' }).click()
  const form = page.getByRole('dialog', { name: 'Create token for default' })
  const expires = form.getByLabel('Expires')
  expect(await expires.inputValue()).toBe('never')
  await form.getByLabel('admin:write').check()
  expect(await expires.inputValue()).toBe('quarter')
  await form.getByLabel('Name', { exact: true }).fill('operator')
  await form.getByRole('button', { name: 'Create token' }).click()
  const secret = page.getByRole('dialog', { name: 'Secret of operator' })
  await secret.waitFor()
  for (let times = 0; times < 3; times++) await page.keyboard.press('Escape')
  expect(await secret.getByLabel('Secret', { exact: true }).inputValue()).toMatch(/^sk-infer-/)
  await secret.getByRole('button', { name: 'I have copied it' }).click()
  await page
    .getByRole('row')
    .filter({ hasText: 'operator' })
    .getByText(/in (89|90)/)
    .waitFor()

  // With the old secret of its own token the session ends, and the new one is still to be copied.
  opened.expectErrors(/401/)
  const own = 'user:read user:write admin:read admin:write'
  await page.getByRole('button', { name: `Rotate ${own}` }).click()
  await page.getByRole('button', { name: 'Create new secret' }).click()
  await page.getByRole('heading', { name: 'Sign in to infer' }).waitFor({ state: 'attached' })
  const next = await page.getByRole('dialog').getByLabel('Secret', { exact: true }).inputValue()
  expect((await console.server.fetch('/api/me', { token: next })).status).toBe(200)
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.getByLabel('API token').waitFor()
})
