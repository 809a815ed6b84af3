import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium as driver, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { firefox, windowless } from '../_browser.ts'
import { full } from '../_full.ts'
import { openHome, type Server } from '../e2e/_home.ts'
import { launchFirefox } from './_firefox.ts'

/** The two sizes in which every page is used. */
export const desktop = { width: 1280, height: 800 } as const
export const phone = { width: 390, height: 844 } as const
export const sizes = [
  ['a desktop', desktop],
  ['a phone', phone],
] as const
export type Size = (typeof sizes)[number][1]

/** Of a journey over pages that other tests show on a phone: a desktop, and a phone too in the whole suite. */
export const seldomOnPhones: readonly (typeof sizes)[number][] = full ? sizes : [sizes[0]]

/** Screenshots for people; no test compares them. */
const screenshots = join(import.meta.dirname, '../../build/screenshots')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** A console in a browser, of a packed server with the models that it ships. */
export interface TestConsole extends AsyncDisposable {
  server: Server
  /** The root token. */
  secret: string
  /** Opens a page of the console in a new browser profile, signed in unless `token` is null. */
  open(path: string, options?: { size?: Size; token?: string | null }): Promise<ConsolePage>
  /** Calls the API as the owner of the machine; throws unless it succeeds. */
  call<T = Record<string, unknown>>(path: string, body?: unknown, method?: string): Promise<T>
  /** A token of the organization with these scopes. */
  token(scopes: string[]): Promise<string>
}

export interface ConsolePage extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** Fails on serious findings of axe in what is shown now, in the light and in the dark theme. */
  expectAccessible(): Promise<void>
  /** Keeps what is shown as build/screenshots/<name>-<width>.png. */
  screenshot(name: string): Promise<void>
  /** Chooses in a list with a search, as a person does: opens it, types the name and clicks what is found. */
  choose(label: string, name: string): Promise<void>
  /** Opens the menu of the account and signs out. */
  signOut(): Promise<void>
  /** Errors in the browser's console that the test causes on purpose, such as a refused request. */
  expectErrors(...these: RegExp[]): void
}

/** The rules of axe that depend on the theme; the others would find the same in both. */
const rulesOfColor = ['color-contrast', 'link-in-text-block']

/**
 * Starts a server and a browser; one for each test file. `program`: for what only a whole browser does, such as keeping
 * a page that was left.
 */
export async function openConsole(
  config?: { models?: object[]; pools?: object; peers?: object; toys?: boolean; limits?: object; webhooks?: object },
  /** Variables of the server's environment. */
  environment: Record<string, string> = {},
  program = windowless,
): Promise<TestConsole> {
  const home = openHome({ programs: ['ffmpeg', 'ffprobe'] })
  if (config) home.configure(config)
  const server = home.serve([], environment)
  const [browser] = await Promise.all([launch(program!), server.ready])
  const secret = home.secret()
  async function call<T>(path: string, body?: unknown, method?: string): Promise<T> {
    const answer = await server.fetch(path, { body, ...(method === undefined ? {} : { method }) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }
  return {
    server,
    secret,
    call,
    async token(scopes) {
      const { organization } = await call<{ organization: { id: string } }>('/api/me')
      const body = { name: scopes.join(' '), scopes }
      const created = await call<{ token: string; secret?: string }>(
        `/api/organizations/${organization.id}/tokens`,
        body,
      )
      return created.secret ?? created.token
    },
    open: (path, { size = sizes[0][1], token = secret } = {}) => openConsolePage(browser, server, path, size, token),
    async [Symbol.asyncDispose]() {
      await browser.close()
      await home[Symbol.asyncDispose]()
    },
  }
}

const launch = (executablePath: string): Promise<Browser> =>
  executablePath === firefox
    ? launchFirefox(firefox)
    : driver.launch({
        executablePath,
        // As people have it: pages that are left are kept for the way back, and scroll bars take space.
        ignoreDefaultArgs: ['--disable-back-forward-cache', '--hide-scrollbars'],
        args: [
          '--no-sandbox',
          '--disable-gpu',
          '--disable-dev-shm-usage',
          // A microphone that beeps.
          '--use-fake-device-for-media-stream',
          '--use-fake-ui-for-media-stream',
        ],
      })

async function openConsolePage(
  browser: Browser,
  server: Server,
  path: string,
  size: Size,
  token: string | null,
): Promise<ConsolePage> {
  // Firefox has the setting from its start: it does not know the command.
  const reducedMotion = browser.browserType().name() === 'firefox' ? null : 'reduce'
  const context = await browser.newContext({ viewport: { ...size }, baseURL: server.url, reducedMotion })
  const faults: string[] = []
  const expected: RegExp[] = []
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text())
  })
  page.on('pageerror', error => faults.push(String(error)))
  page.on('request', request => {
    const url = request.url()
    if (!url.startsWith(server.url) && !/^(data|blob|about):/.test(url)) faults.push(`a request to ${url}`)
  })
  if (token !== null) {
    // The same exchange that the page for signing in does.
    const answer = await context.request.post('/api/session', {
      data: { token },
      headers: { 'x-infer-console': '1', 'sec-fetch-site': 'same-origin', origin: server.url },
    })
    expect(answer.status(), await answer.text()).toBe(201)
  }
  await page.goto(`/console${path}`)
  return {
    page,
    context,
    async expectAccessible() {
      if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
      for (const [colorScheme, rules] of [
        ['dark', undefined],
        ['light', rulesOfColor],
      ] as const) {
        await page.emulateMedia({ colorScheme })
        const findings = await page.evaluate(async only => {
          const { axe } = globalThis as unknown as {
            axe: { run(options: { runOnly?: readonly string[] }): Promise<{ violations: AxeFinding[] }> }
          }
          return (await axe.run(only ? { runOnly: only } : {})).violations
        }, rules)
        const serious = findings.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        const named = serious.map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html).join('\n')}`)
        expect([colorScheme, ...named]).toEqual([colorScheme])
      }
    },
    async screenshot(name) {
      mkdirSync(screenshots, { recursive: true })
      await page.screenshot({ path: join(screenshots, `${name}-${size.width}.png`), fullPage: false })
    },
    async choose(label, name) {
      await page.getByLabel(label, { exact: true }).click()
      await page.getByRole('combobox', { name: `Search: ${label}` }).fill(name)
      await page
        .getByRole('option')
        .filter({ has: page.getByText(name, { exact: true }) })
        .click()
      await page.getByRole('listbox').waitFor({ state: 'detached' })
    },
    async signOut() {
      await page.getByRole('button', { name: /^Signed in with the token/ }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
    },
    expectErrors: (...these) => void expected.push(...these),
    async [Symbol.asyncDispose]() {
      await context.close()
      expect(faults.filter(fault => !expected.some(one => one.test(fault)))).toEqual([])
    },
  }
}

interface AxeFinding {
  id: string
  impact: string
  nodes: { html: string }[]
}
