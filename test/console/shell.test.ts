import type { Route } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { chromium } from '../_browser.ts'
import { openConsole, sizes, type TestConsole } from './_console.ts'
import { firstScreen } from './_first-screen.ts'

let console: TestConsole
beforeAll(async () => {
  console = await openConsole(undefined, {}, chromium)
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
  const menu = page.getByRole('button', { name: 'Menu' })
  if (narrow) {
    await menu.click()
    await page.getByRole('link', { name: 'Jobs', exact: true }).focus()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Jobs', exact: true }).waitFor({ state: 'hidden' })
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Menu')
    await menu.click()
  }
  await opened.signOut()
  await page.getByRole('heading', { name: 'Sign in to infer' }).waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
})

test('the first screen is at most 200 kB as sent', async () => {
  const { bytes } = await firstScreen(console)
  expect(bytes).toBeGreaterThan(50_000)
  expect(bytes).toBeLessThanOrEqual(200_000)
})

test('the session and the scripts of a page are requested together with the console', async () => {
  await using opened = await console.open('/jobs')
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  interface Request {
    name: string
    startTime: number
    responseEnd: number
  }
  const read =
    "performance.getEntriesByType('resource').map(({ name, startTime, responseEnd }) => ({ name, startTime, responseEnd }))"
  // A request has an entry once it has been answered.
  const requests = await vi.waitUntil(
    async () => {
      const all = await page.evaluate<Request[]>(read)
      return all.some(({ name }) => /api\/jobs\?/.test(name)) ? all : undefined
    },
    { timeout: 10_000 },
  )
  const one = (path: RegExp) => requests.find(({ name }) => path.test(name))!
  const [main, jobs, session, list] = [/main-\w+\.js/, /jobs-\w+\.js/, /api\/session$/, /api\/jobs\?/].map(one)
  expect(jobs!.startTime).toBeLessThan(main!.responseEnd)
  expect(jobs!.startTime).toBeLessThan(session!.responseEnd)
  // The session is read once.
  expect(requests.filter(({ name }) => name.endsWith('/api/session'))).toHaveLength(1)
  expect(list!.startTime).toBeGreaterThan(session!.responseEnd)
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

test('Ctrl+K finds pages, models, jobs and actions, also without a mouse', async () => {
  const { id } = await console.call<{ id: string }>('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'to be found', width: 64, height: 64 },
  })
  await using opened = await console.open('/')
  const { page } = opened
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const search = page.getByRole('combobox', { name: /^Find pages/ })
  const find = async (words: string) => {
    await page.keyboard.press('Control+k')
    await search.fill(words)
  }
  await page.keyboard.press('Control+k')
  await page.getByRole('option', { name: 'infer/tiny-embed Not loaded' }).waitFor()
  await opened.expectAccessible()
  await page.keyboard.press('Escape')
  await search.waitFor({ state: 'detached' })

  await find('lib')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Library' }).waitFor()
  await find('models tiny')
  await page
    .getByRole('option', { name: /^infer\/tiny/ })
    .first()
    .waitFor()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'infer/tiny-embed' }).waitFor()
  await find(id.replace('job_', 'q_'))
  await page.keyboard.press('Enter')
  await page.getByText('to be found').first().waitFor()
  await find('BE found')
  await page.getByRole('option', { name: /^to be found/ }).waitFor()
  await page.keyboard.press('Escape')
  await find('theme dark')
  await page.keyboard.press('Enter')
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  // The menu of the account knows it.
  await page.getByRole('button', { name: /^Signed in with the token/ }).click()
  await page.getByRole('menuitemradio', { name: 'Dark', checked: true }).waitFor()
  await page.keyboard.press('Escape')
  // What is not among the newest is searched for on its page.
  await find('no such thing at all')
  await page.getByRole('option', { name: 'Search “no such thing at all” in all workflows' }).waitFor()
  await opened.expectAccessible()
})

test('the menu of the account is used by keyboard', async () => {
  await using opened = await console.open('/models')
  const { page } = opened
  const button = page.getByRole('button', { name: /^Signed in with the token/ })
  await button.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('menu', { name: 'Account' }).waitFor()
  await opened.expectAccessible()
  await page.keyboard.press('End')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Sign out')
  await page.keyboard.press('Escape')
  await page.getByRole('menu').waitFor({ state: 'detached' })
  expect(await page.evaluate('document.activeElement.ariaHasPopup')).toBe('menu')
  await page.keyboard.press('Enter')
  await page.getByRole('menuitemradio', { name: 'Dark' }).click()
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
})

test('nothing moves when the font comes', async () => {
  await using opened = await console.open('/no-such-file.js')
  const { page } = opened
  const gate = Promise.withResolvers<void>()
  await page.route('**/*.woff2', async route => {
    await gate.promise
    await route.continue()
  })
  await page.goto('/console/models', { waitUntil: 'commit' })
  await page.getByRole('link', { name: 'infer/demo' }).waitFor()
  const width = () =>
    page.evaluate<number>(`(() => {
      const range = document.createRange()
      range.selectNodeContents(document.querySelector('h1'))
      return range.getBoundingClientRect().width
    })()`)
  const before = await width()
  await page.evaluate(`globalThis.moved = 0
    new PerformanceObserver(list => { for (const { value } of list.getEntries()) moved += value }).observe({ type: 'layout-shift' })`)
  gate.resolve()
  await page.evaluate('document.fonts.ready')
  expect(
    await page.evaluate('[...document.fonts].filter(one => one.family === "Geist" && one.status === "loaded").length'),
  ).toBeGreaterThan(0)
  await page.evaluate('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))')
  expect(await page.evaluate<number>('moved')).toBeLessThan(0.01)
  const after = await width()
  expect(after).not.toBe(before)
  expect(Math.abs(after - before) / before).toBeLessThan(0.05)
})

/** What the pages show, by the names in their paths: made once. */
const shown = (() => {
  let made: Promise<Record<string, string>> | undefined
  return () => (made ??= make())
  async function make(): Promise<Record<string, string>> {
    const { organization } = await console.call<{ organization: { id: string } }>('/api/me')
    await console.call('/api/organizations', { name: 'another' })
    const paint = { task: 'slug/text-to-image', model_id: 'infer/demo' }
    const { id } = await console.call<{ id: string }>('/api/jobs', { ...paint, inputs: { prompt: 'a tall image' } })
    const dag = { nodes: { ask: { task: 'wait/approval', inputs: { title: 'May it go on?' } } } }
    const { execution } = await console.call<{ execution: { id: string } }>('/api/workflows/run', { dag })
    await console.call(`/api/jobs/${id}?wait=30`)
    const asked = () => console.call<{ approvals: object[] }>(`/api/approvals?execution_id=${execution.id}`)
    await expect.poll(async () => (await asked()).approvals.length).toBe(1)
    return { organization: organization.id, job: id, execution: execution.id }
  }
})()

// A button that moves between the press and the release of the mouse is not clicked.
test.each([
  { path: '/', first: 'Show all', last: 'No job or request has failed' },
  { path: '/organizations/:organization', first: 'Create token', last: 'Starts again' },
  { path: '/usage', first: 'Change limits', last: 'Usage by model', newestFirst: true },
  { path: '/jobs', first: 'Organization', last: 'a tall image' },
  { path: '/jobs/:job', first: 'Use as input', last: 'Completed' },
  { path: '/executions/:execution', first: 'Time line', last: 'May it go on?' },
])('nothing that can be clicked moves while the answers of $path come', async ({ path, first, last, newestFirst }) => {
  const ids = await shown()
  await using opened = await console.open('/no-such-file.js')
  const { page } = opened
  // The answers come one by one, so that each is drawn before the next.
  const held: Route[] = []
  await page.route(/\/(api|files)\//, route => void held.push(route))
  await page.addInitScript({
    content: `
      const places = new Map()
      globalThis.moved = new Set()
      const look = () => {
        for (const control of document.querySelectorAll('main button, main a, main select, main input')) {
          if (!control.checkVisibility({ visibilityProperty: true })) continue
          const { x, y } = control.getBoundingClientRect()
          const before = places.get(control)
          if (before && Math.hypot(x - before.x, y - before.y) > 2) moved.add(control.textContent)
          places.set(control, { x, y })
        }
        requestAnimationFrame(look)
      }
      requestAnimationFrame(look)`,
  })
  await page.goto(`/console${path.replace(/:(\w+)/, (_, name: string) => ids[name]!)}`)
  const hasImages = () => page.evaluate('[...document.images].every(one => one.complete || one.loading === "lazy")')
  while (held.length > 0 || !(await page.getByText(last).first().isVisible()) || !(await hasImages())) {
    await (newestFirst ? held.pop() : held.shift())?.continue()
    await page.evaluate('new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
  }
  await page.getByText(first).first().waitFor()
  expect(await page.evaluate('[...moved]')).toEqual([])
})

test('a page that the token may not use is not offered, and refused by its address', async () => {
  const token = await console.token(['user:read'])
  await using opened = await console.open('/system', { token })
  const { page } = opened
  await page.getByText('lacks the scope admin:read').waitFor()
  expect(await page.getByRole('link', { name: 'System' }).count()).toBe(0)
})

test('pages that are left give their connections back, and go on when a person returns', async () => {
  await using opened = await console.open('/jobs')
  const { page } = opened
  for (let visits = 0; visits < 8; visits++) {
    const stream = page.waitForResponse(/\/api\/events$/)
    await page.goto(`/console/jobs?visit=${visits}`)
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
    await stream
  }
  // A page that was kept is not loaded again.
  for (let steps = 0; steps < 3; steps++) await page.goBack({ waitUntil: 'commit' })
  expect(page.url()).toContain('visit=4')
  await console.call('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'while away', width: 64, height: 64 },
  })
  await page.getByRole('link', { name: 'while away' }).waitFor()
})

test('a tab that is not looked at gives its connection back, and misses nothing', async () => {
  await using opened = await console.open('/jobs')
  const { page } = opened
  await page.clock.install()
  const stream = page.waitForResponse(/\/api\/events$/)
  await page.reload()
  await stream
  await page.getByText('No jobs yet').or(page.getByRole('table')).waitFor()
  const hide = (hidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${hidden} })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await hide(true)
  const ended = page.waitForEvent('requestfailed', request => request.url().endsWith('/api/events'))
  await page.clock.fastForward(15_000)
  await ended
  await console.call('/api/jobs', {
    task: 'slug/text-to-image',
    model_id: 'infer/demo',
    inputs: { prompt: 'unseen', width: 64, height: 64 },
  })
  await hide(false)
  await page.clock.fastForward(5_000)
  await page.getByRole('link', { name: 'unseen' }).waitFor()
})

test('where scroll bars take space, tabs have none', async () => {
  await using opened = await console.open('/models')
  const { page } = opened
  await page.getByRole('tab', { name: 'Downloads' }).waitFor()
  const heights = ({ scrollHeight, clientHeight }: { scrollHeight: number; clientHeight: number }) =>
    scrollHeight - clientHeight
  expect(await page.getByRole('tablist').evaluate(heights as never)).toBe(0)
})

test('a lost connection is said after a while, and what was missed appears when the server is back', async () => {
  await using opened = await console.open('/models')
  const { page, context } = opened
  opened.expectErrors(/ERR_INTERNET_DISCONNECTED/)
  await page.clock.install()
  await page.reload()
  const model = page.getByRole('link', { name: 'infer/demo' })
  await model.waitFor()
  await context.setOffline(true)
  // The browser keeps the stream that was open: it is silent for as long as the server never is.
  await page.clock.fastForward(45_000)
  await page.clock.fastForward(5_000)
  await page.getByText('The connection to the server is lost').waitFor()
  await page.getByText('The server does not answer').first().waitFor()
  expect(await model.count()).toBe(1)
  await opened.expectAccessible()
  await opened.screenshot('offline')
  await opened.signOut()
  await page.locator('[aria-live=polite]').getByText('The server does not answer').waitFor()
  await page.clock.fastForward(6_000)
  await page.getByRole('button', { name: 'Connect now' }).waitFor()
  // A page that was never opened says the same, and opens by itself.
  opened.expectErrors(/dynamically imported module/)
  await page.getByRole('link', { name: 'Library' }).click()
  await page.getByText('This page opens by itself').waitFor()
  await context.setOffline(false)
  await page.getByRole('heading', { level: 1, name: 'Library' }).waitFor()
  await page.getByText('The connection to the server is lost').waitFor({ state: 'detached' })
  await page.getByText('The server does not answer').waitFor({ state: 'detached' })
})
