import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConsole, type TestConsole } from './_console.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole()
})
afterAll(() => console?.[Symbol.asyncDispose]())

test('a link signs in once, leaves the address, and the session outlives a reload', async () => {
  const { url } = await console.call<{ url: string }>('/api/session/codes', {})
  const link = url.slice(url.indexOf('/sign-in'))
  await using opened = await console.open(link, { token: null })
  const { page, context } = opened
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  expect(page.url()).toBe(`${console.server.url}/console/`)
  expect(await page.evaluate('document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })')).not.toMatch(
    /session|sk-infer/,
  )
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()

  opened.expectErrors(/401/)
  await context.clearCookies()
  await page.goto(url)
  await page.getByRole('alert').getByText('This link was used before').waitFor()
})

test('a session whose cookie the browser has dropped has ended, and goes on where it was', async () => {
  await using opened = await console.open('/jobs')
  opened.expectErrors(/401/)
  const { page, context } = opened
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  await context.clearCookies()
  await page.getByRole('link', { name: 'Library' }).click()
  await page.getByRole('alert').getByText('The session has ended. Sign in again.').waitFor()
  await page.getByLabel('API token').fill(console.secret)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Library' }).waitFor()
})

test('a session whose token is revoked ends, and says why', async () => {
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const path = `/api/organizations/${organization.id}/tokens`
  const made = await console.call<{ token: { id: string }; secret: string }>(path, {
    name: 'short',
    scopes: ['user:read'],
  })
  await using opened = await console.open('/usage', { token: made.secret })
  opened.expectErrors(/401/)
  await opened.page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
  await console.call(`${path}/${made.token.id}/revoke`, {}, 'POST')
  await opened.page.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  await opened.page.getByRole('alert').getByText("The token 'short'").waitFor()
})

/** A page of another origin on the same host: browsers send it the cookies of the host, whatever SameSite says. */
async function neighbour(): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<body></body>'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

test('a page on another port of this host reads nothing, does nothing and shows no frame of the console', async () => {
  await using evil = await neighbour()
  await using opened = await console.open('/')
  await opened.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
  const tokens = `/api/organizations/${organization.id}/tokens`
  // When a token was last used changes with every request of the page.
  const known = async () =>
    (await console.call<{ tokens: { last_used_at: number }[] }>(tokens)).tokens.map(token => ({
      ...token,
      last_used_at: 0,
    }))
  const before = await known()
  const page = await opened.context.newPage()
  const answers: number[] = []
  page.on('response', response => {
    if (response.url().startsWith(console.server.url)) answers.push(response.status())
  })
  await page.goto(evil.url)
  const target = console.server.url + tokens
  const results = await page.evaluate(
    async ([target, server]) => {
      const send = (url: string, init: RequestInit) =>
        fetch(url, { credentials: 'include', ...init }).then(
          ({ type, status }) => `${type} ${status}`,
          () => 'refused',
        )
      const body = '{"name":"stolen"}'
      const console = { 'x-infer-console': '1' }
      return [
        await send(target!, { headers: console }),
        await send(target!, { method: 'POST', headers: { ...console, 'content-type': 'application/json' }, body }),
        await send(target!, { method: 'POST', mode: 'no-cors', body }),
        await send(`${server}/api/session`, { method: 'DELETE', headers: console }),
        await send(target!, {}),
      ]
    },
    [target, console.server.url],
  )
  expect(results).toEqual(['refused', 'refused', 'opaque 0', 'refused', 'refused'])

  const form = `<form method="post" enctype="text/plain" target="hole" action="${target}"><input name='{"name":"x","a":"' value='"}'></form>`
  const frames = `<iframe name="hole"></iframe><iframe src="${console.server.url}/console"></iframe>`
  await page.evaluate(`document.body.innerHTML = ${JSON.stringify(form + frames)}; document.forms[0].submit()`)
  await expect.poll(() => answers.filter(status => status === 401 || status === 200).length).toBeGreaterThan(2)
  // Browsers show an error in the place of a page that may not be framed.
  await expect
    .poll(() => page.frames().map(frame => frame.url()))
    .toEqual([`${evil.url}/`, expect.not.stringContaining('/console'), expect.not.stringContaining('/console')])

  expect(await known()).toEqual(before)
  await opened.page.reload()
  await opened.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
})
