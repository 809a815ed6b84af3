import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../gpu/sandbox/program.ts'

const installed = (...names: string[]): string | undefined =>
  names.map(name => findProgram(name, process.env.PATH ?? '')).find(path => path !== undefined)

/** The path of the installed browser; undefined without one. */
export const chromium = installed('chromium', 'chromium-browser', 'google-chrome')

/** The same engine without the windows, where it is installed: three fifths of the processor time. */
export const windowless = installed('chromium-headless-shell') ?? chromium

/** Firefox, for the walks that both browsers go; undefined without one. */
export const firefox = installed('firefox-esr', 'firefox')

const options = [
  ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
  ['--disable-background-networking', '--disable-component-update', '--disable-sync'],
].flat()

export interface Pages extends AsyncDisposable {
  /** The origin of the pages. `http://localhost:<port>` is another origin of the same pages. */
  origin: string
  /**
   * Opens a page of this origin in a new browser, and resolves with the value that its script returns. The script
   * is the body of an async function, with `input` as its argument. Rejects with what it throws.
   */
  run(origin: string, script: string, input: unknown): Promise<unknown>
}

/** Serves pages on a loopback port for the browser. */
export async function openPages(): Promise<Pages> {
  let page = ''
  let result = Promise.withResolvers<unknown>()
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      response.end()
      const { value, error } = JSON.parse(Buffer.concat(pieces).toString()) as { value?: unknown; error?: string }
      if (error === undefined) result.resolve(value)
      else result.reject(new Error(error))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async run(origin, script, input) {
      result = Promise.withResolvers()
      page = pageOf(script, input)
      const profile = mkdtempSync(join(tmpdir(), 'infer-browser-'))
      const child = spawn(chromium!, [...options, `--user-data-dir=${profile}`, `${origin}/`], { stdio: 'ignore' })
      child.once('exit', code => result.reject(new Error(`The browser ended with ${code} before its page did.`)))
      try {
        return await result.promise
      } finally {
        await end(child)
        rmSync(profile, { recursive: true, force: true, maxRetries: 10 })
      }
    },
    [Symbol.asyncDispose]: () => close(server),
  }
}

const pageOf = (script: string, input: unknown): string => `<!doctype html><title>test</title><script type="module">
const told = told => fetch('/', { method: 'POST', body: JSON.stringify(told) })
const run = async input => { ${script} }
run(${JSON.stringify(input).replaceAll('<', '\\u003c')}).then(value => told({ value }), error => told({ error: String(error) }))
</script>`

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill()
  await ended
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise<void>(resolve => server.close(() => resolve()))
}
