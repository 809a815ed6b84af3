import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { type App, openApp } from '../cli/server/app.ts'
import { openLog } from '../core/log.ts'
import { fixtureProgram } from './_fixtures.ts'

const node = process.execPath
export const fakeEngine: string = fixtureProgram('engine')

/** With INFER_TEST_FRONTS=2 every app of the tests has so many gateway processes; otherwise one, on any machine. */
export const fronts = { gateway_processes: Number(process.env.INFER_TEST_FRONTS ?? 1) }

/** The paths that the fake engine needs to read: it imports from the whole repository. */
export const fakeNeeds = { sandbox_read: [join(import.meta.dirname, '..')] }

/** A model that the fake engine serves, as an entry of infer.yaml. */
export const fakeModel = (id: string, flags: string[] = [], more: object = {}) => ({
  id,
  engine: 'custom',
  command: [node, fakeEngine, '--port', '{port}', ...flags],
  health_path: '/health',
  ...fakeNeeds,
  devices: 'cpu',
  memory: '16MiB',
  tasks: ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score'],
  stop_grace: '500ms',
  ...more,
})

/** Folders of running jobs, below the data directory. The folders of their engines are kept. */
export const workspacesIn = (dataDir: string): string[] =>
  readdirSync(join(dataDir, 'work'), { recursive: true, encoding: 'utf8' }).filter(name => name.includes('job_'))

export interface TestApp extends AsyncDisposable {
  app: App
  url: string
  /** The root token's secret. */
  secret: string
  organizationId: string
  dataDir: string
  configPath: string
  /** The next log line of the server with this message, once it is written. */
  logged(message: string | RegExp): Promise<Record<string, unknown>>
  /** Lines that the server logged as errors. A test that expects some empties it; any that remain fail the test. */
  errors: string[]
  /** All lines that the server has logged. */
  lines: readonly string[]
  fetch(
    path: string,
    options?: {
      method?: string
      body?: unknown
      token?: string | null
      headers?: Record<string, string>
      signal?: AbortSignal
    },
  ): Promise<Response>
}

/** The whole program in this process: real store, real sockets, engines as child processes, in its own directory. */
export async function startApp(
  config: {
    models?: object[]
    gateway_processes?: number
    limits?: object
    public_url?: string
    allowed_hosts?: string[]
    trusted_proxies?: string[]
    media?: object
    webhooks?: object
    plans?: object
    metrics?: string
    cors?: object
    region?: string
    prompt_rewriting?: object
    batch_price_factor?: number
    ollama?: object
    console?: boolean
    pools?: object
    peers?: object
  } = {},
): Promise<TestApp> {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-test-'))
  const configPath = join(dataDir, 'infer.yaml')
  // A small disk must not fail a test: the free-space threshold has its own tests.
  writeFileSync(
    configPath,
    stringify({
      models: [fakeModel('fake')],
      ...fronts,
      ...config,
      // Engines are children of this process: one that keeps them is started where a test is about it.
      limits: { min_free_disk: 0, ballast: 0, adopt_grace: 0, ...config.limits },
    }),
  )
  const errors: string[] = []
  const awaited = new Set<(line: string) => void>()
  const lines: string[] = []
  const log = openLog('info', line => {
    lines.push(line)
    if (line.includes('"level":"error"')) errors.push(line)
    for (const seen of awaited) seen(line)
  })
  const app = await openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  return {
    app,
    url: app.url,
    secret,
    organizationId: app.firstStart!.organizationId,
    dataDir,
    configPath,
    logged: message =>
      new Promise(resolve => {
        const seen = (text: string) => {
          const line = JSON.parse(text) as { message: string }
          if (!(typeof message === 'string' ? line.message.includes(message) : message.test(line.message))) return
          awaited.delete(seen)
          resolve({ ...line })
        }
        awaited.add(seen)
      }),
    errors,
    lines,
    fetch: (path, { method, body, token = secret, headers, signal } = {}) =>
      fetch(app.url + path, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      }),
    async [Symbol.asyncDispose]() {
      await app.close()
      // What engines have saved is in main memory, behind a link.
      const conversations = join(dataDir, 'run', 'conversations')
      if (existsSync(conversations)) rmSync(realpathSync(conversations), { recursive: true })
      rmSync(dataDir, { recursive: true, force: true })
      if (errors.length > 0) throw new Error(`The server logged errors:\n${errors.join('')}`)
    },
  }
}
