import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeServerFile } from '../../../cli/client/find-server.ts'
import { startApp, type TestApp } from '../../_app.ts'
import { runInProcess } from '../_in-process.ts'
import { temporaryFolder } from '../_infer.ts'

let app: TestApp
beforeAll(async () => void (app = await startApp()))
afterAll(() => app?.[Symbol.asyncDispose]())

const environment = () => ({ INFER_URL: app.url, INFER_TOKEN: app.secret })
const link = /^http:\/\/127\.0\.0\.1:\d+\/console\/sign-in#code=([\w-]{43})$/

async function signsIn(url: string): Promise<number> {
  const headers = { 'x-infer-console': '1', 'sec-fetch-site': 'same-origin' }
  const answer = await app.fetch('/api/session', { token: null, headers, body: { code: link.exec(url)?.[1] } })
  await answer.text()
  return answer.status
}

test('a link that signs in is printed where no browser can be opened', async () => {
  for (const [args, streams] of [
    [['console'], {}],
    [['console'], { isTerminal: true }],
    [['console', '--no-open'], { isTerminal: true, display: ':0' }],
  ] as const) {
    const { exitCode, stdout } = await runInProcess(args, environment(), streams)
    expect([exitCode, await signsIn(stdout.toString().trim())]).toEqual([0, 201])
  }
})

test('on the machine of the server, the printed link has the address that other machines reach', async () => {
  const listening = (urls: string[]) => writeServerFile(app.dataDir, { url: app.url, urls })
  const run = () => runInProcess(['console'], { INFER_DATA_DIR: app.dataDir })
  listening([app.url, 'http://192.0.2.2:18'])
  const reached = await run()
  expect([reached.stdout.toString(), reached.stderr]).toEqual([
    expect.stringMatching(/^http:\/\/192\.0\.2\.2:18\/console\/sign-in#code=[\w-]{43}\n$/),
    '',
  ])
  listening([app.url])
  const local = await run()
  expect([await signsIn(local.stdout.toString().trim()), local.stderr]).toEqual([
    201,
    expect.stringContaining('Only this machine reaches this address. From another one, forward the port'),
  ])
})

test('--json is the link and when it expires', async () => {
  const { stdout } = await runInProcess(['console', '--json'], environment())
  const { url, expires_at } = JSON.parse(stdout.toString()) as { url: string; expires_at: number }
  expect(Object.keys(JSON.parse(stdout.toString()) as object)).toEqual(['url', 'expires_at'])
  expect(Math.abs(expires_at - Date.now() / 1_000 - 120)).toBeLessThan(5)
  expect(await signsIn(url)).toBe(201)
})

test('with a display the browser is opened, and the code is not printed', async () => {
  const folder = temporaryFolder()
  const opened = join(folder, 'opened')
  writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\necho "$1" > ${opened}\n`)
  chmodSync(join(folder, 'xdg-open'), 0o755)
  const { stdout } = await runInProcess(
    ['console'],
    { ...environment(), PATH: folder },
    { isTerminal: true, display: ':0' },
  )
  expect(stdout.toString()).toBe(`The console is open in the browser: ${app.url}/console\n`)
  expect(await signsIn(readFileSync(opened, 'utf8').trim())).toBe(201)
})

test('a browser that does not start is a remark, and the link is printed', async () => {
  const { stdout, stderr } = await runInProcess(
    ['console'],
    { ...environment(), PATH: temporaryFolder() },
    { isTerminal: true, display: ':0' },
  )
  expect(stderr).toContain('No browser was opened, because xdg-open is not installed.')
  expect(stdout.toString().trim()).toMatch(link)
})
