import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findProgram } from '../../gpu/sandbox/program.ts'
import { openConsole, seldomOnPhones, type TestConsole } from './_console.ts'

/** The runs that the playground takes from the server. */
let console: TestConsole
beforeAll(async () => {
  console = await openConsole({ toys: true })
})
afterAll(() => console?.[Symbol.asyncDispose]())

const runs = (page: Page, words: string) => page.getByRole('article').filter({ hasText: words })

interface Inputs {
  prompt: string
  seed?: number
}

async function inputsOf(words: string): Promise<Inputs[]> {
  const { jobs } = await console.call<{ jobs: { id: string }[] }>('/api/jobs?metadata[source]=playground&limit=100')
  const all = await Promise.all(jobs.map(({ id }) => console.call<{ inputs: Inputs }>(`/api/jobs/${id}`)))
  return all.flatMap(({ inputs }) => (inputs.prompt === words ? [inputs] : []))
}

/** Opens the playground with a small image to make, which costs little. */
async function openSmall() {
  const opened = await console.open('/playground?task=slug/text-to-image')
  await opened.page.getByText('More parameters').click()
  await opened.page.getByLabel('Width').fill('64')
  await opened.page.getByLabel('Height').fill('64')
  return opened
}

test.each(seldomOnPhones)('on %s a person varies a run, runs it again and takes its settings', async (name, size) => {
  const words = `a harbour on ${name}`
  const address = `/playground?task=slug/text-to-image&prompt=${encodeURIComponent(words)}`
  await using opened = await console.open(address, { size })
  const { page } = opened
  const prompt = page.getByLabel('Prompt', { exact: true })
  expect(await prompt.inputValue()).toBe(words)
  const shapes = page.getByRole('group', { name: 'Aspect ratio' })
  await shapes.getByText('9:16').click()
  const code = page.getByLabel('curl', { exact: true }).and(page.locator('pre'))
  await expect.poll(() => code.textContent()).toContain('"aspect_ratio": "9:16"')
  await shapes.getByText('Default', { exact: true }).click()
  await page.getByText('More parameters').click()
  await page.getByLabel('Width').fill('64')
  await page.getByLabel('Height').fill('64')
  const steps = page.getByLabel('Inference steps: slider')
  expect(await steps.getAttribute('aria-valuetext')).toBe('Default: 30')
  await steps.fill('4')
  expect(await page.getByLabel('Inference steps', { exact: true }).inputValue()).toBe('4')
  await page.getByLabel('Seed').fill('11')
  await page.getByLabel('Variations').selectOption('2')
  await prompt.press('Control+Enter')
  const images = runs(page, words).getByRole('img')
  await expect.poll(() => images.count()).toBe(2)
  expect(new Set((await inputsOf(words)).map(({ seed }) => seed))).toEqual(new Set([11, 12]))
  expect((await inputsOf(words))[0]).toMatchObject({ width: 64, height: 64, num_inference_steps: 4 })
  await opened.expectAccessible()
  await opened.screenshot('playground-variations')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)

  await page.getByLabel('Variations').selectOption('1')
  await runs(page, words).getByRole('button', { name: 'Vary seed' }).click()
  await expect.poll(() => images.count()).toBe(4)
  const seeds = new Set((await inputsOf(words)).map(({ seed }) => seed))
  expect(seeds.size).toBe(4)
  await runs(page, words).first().getByRole('button', { name: 'Again' }).click()
  await expect.poll(() => images.count()).toBe(6)
  expect(new Set((await inputsOf(words)).map(({ seed }) => seed))).toEqual(seeds)

  await prompt.fill('something else')
  await expect.poll(() => new URL(page.url()).searchParams.get('prompt')).toBe('something else')
  await runs(page, words).last().getByRole('button', { name: 'Use settings' }).click()
  await expect.poll(() => prompt.inputValue()).toBe(words)
  expect(await page.getByLabel('Seed').inputValue()).toBe('11')
})

test('a job whose page is left before the answer comes is found again, once', async () => {
  await using opened = await openSmall()
  const { page } = opened
  const words = 'a lost answer'
  await page.getByLabel('Prompt', { exact: true }).fill(words)
  const arrived = Promise.withResolvers<void>()
  // The server gets the request and answers; the page is left before it has the answer.
  await page.route('**/api/jobs', async route => {
    if (route.request().method() !== 'POST') return route.fallback()
    await route.fetch()
    arrived.resolve()
  })
  await page.getByRole('button', { name: 'Run' }).click()
  await arrived.promise
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.reload()
  await runs(page, words).getByRole('img').waitFor()
  await expect.poll(() => page.evaluate(`Object.keys(sessionStorage).join()`)).not.toContain('outbox')
  expect(await runs(page, words).count()).toBe(1)
  expect(await inputsOf(words)).toHaveLength(1)
})

test('a job that does not reach the server says so, and is sent again when a person wants it', async () => {
  await using opened = await openSmall()
  const { page } = opened
  opened.expectErrors(/ERR_CONNECTION_FAILED/)
  const words = 'a lost request'
  await page.getByLabel('Prompt', { exact: true }).fill(words)
  await page.route('**/api/jobs', route =>
    route.request().method() === 'POST' ? route.abort('connectionfailed') : route.fallback(),
  )
  await page.getByRole('button', { name: 'Run' }).click()
  await runs(page, words).getByText('The server does not answer.').waitFor()
  await opened.expectAccessible()
  await page.unrouteAll()
  await runs(page, words).getByRole('button', { name: 'Send again' }).click()
  await runs(page, words).getByRole('img').waitFor()
  expect(await inputsOf(words)).toHaveLength(1)
})

const run = promisify(execFile)
const directory = mkdtempSync(join(tmpdir(), 'infer-shown-'))
afterAll(() => rmSync(directory, { recursive: true }))
const programs = {
  curl: { program: 'curl', run: (code: string) => ['bash', '-c', code] },
  Python: { program: 'python3', run: (code: string) => ['python3', written('shown.py', code)] },
  JavaScript: { program: 'node', run: (code: string) => [process.execPath, written('shown.mjs', code)] },
}
const written = (name: string, code: string): string => {
  const path = join(directory, name)
  writeFileSync(path, code)
  return path
}

test('the code that the page shows runs as it is shown', async () => {
  await using opened = await openSmall()
  const { page } = opened
  const words = `It's "shown", $HOME \\n as code`
  await page.getByLabel('Prompt', { exact: true }).fill(words)
  await page.getByLabel('Seed').fill('5')
  for (const [language, { program, run: command }] of Object.entries(programs)) {
    if (program !== 'node' && !findProgram(program, process.env.PATH ?? '')) continue
    await page.getByRole('tab', { name: language }).click()
    const code = page.getByLabel(language, { exact: true }).and(page.locator('pre'))
    await expect.poll(() => code.textContent()).toMatch(/5\b/)
    const [file, ...parameters] = command((await code.textContent())!)
    const { stdout } = await run(file!, parameters, {
      env: { PATH: process.env.PATH, INFER_TOKEN: console.secret },
    })
    expect(stdout).toMatch(/"seed_used": ?5/)
  }
  const { jobs } = await console.call<{ jobs: { id: string }[] }>('/api/jobs?kind=async&limit=1')
  expect(await console.call(`/api/jobs/${jobs[0]!.id}`)).toMatchObject({ inputs: { prompt: words, seed: 5 } })
})

test('a run with more jobs than a page of the list is shown whole', async () => {
  const inputs = { prompt: 'thirteen' }
  // They wait, so that they cost nothing.
  const job = { task: 'slug/text-to-image', model: 'infer/demo', inputs, not_before: 4_000_000_000 }
  for (let place = 0; place < 13; place++) {
    const metadata = { source: 'playground', submission: `run_thirteen.${place}` }
    await console.call('/api/jobs', { ...job, metadata })
  }
  await using opened = await console.open('/playground?task=slug/text-to-image')
  const links = runs(opened.page, 'thirteen').getByRole('link', { name: 'Open job' })
  await expect.poll(() => links.count()).toBe(13)
})
