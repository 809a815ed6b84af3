import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { stringify } from 'yaml'

const executable = resolve('build/infer')

/** The outcome of a command. */
export interface Ended {
  code: number | null
  out: string
  err: string
  /** Milliseconds are measured from start to exit. */
  ms: number
}

export interface Asking {
  method?: string
  body?: unknown
  token?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** A running `infer serve`. */
export interface Server {
  pid: number
  /** Resolves with the address once the server has printed it; rejects when the server exits before. */
  ready: Promise<string>
  /** The address; throws before `ready`. */
  url: string
  out(): string
  err(): string
  /** The error entries of its log. */
  errors(): string[]
  kill(signal: NodeJS.Signals): void
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Sends the root token unless another is given. */
  fetch(path: string, asking?: Asking): Promise<Response>
}

/**
 * An empty machine: an empty home, and an environment of HOME, INFER_DATA_DIR and a PATH that contains only the
 * programs that wrap engines, and `programs` where they are installed. The data directory lies in the home unless it is given. Everything started in it is ended
 * with it; errors in a log fail the test.
 */
export type Home = ReturnType<typeof openHome>

export function openHome({
  dataDir: elsewhere,
  programs = [],
}: {
  dataDir?: string
  programs?: readonly string[]
} = {}) {
  if (!existsSync(executable)) throw new Error('build/infer is missing. Run: npm run pack')
  const folder = mkdtempSync(join(tmpdir(), 'infer-e2e-'))
  const tools = join(folder, 'tools')
  mkdirSync(tools)
  for (const name of ['setpriv', 'unshare', 'bwrap', ...programs]) {
    const found = (process.env.PATH ?? '')
      .split(':')
      .map(place => join(place, name))
      .find(isProgram)
    if (found) symlinkSync(found, join(tools, name))
  }
  const dataDir = elsewhere ?? join(folder, 'data')
  const environment = { HOME: folder, INFER_DATA_DIR: dataDir, PATH: tools }
  const children: ChildProcess[] = []
  const servers: Server[] = []
  const expected: RegExp[] = []
  const secret = (): string => readFileSync(join(dataDir, 'root-token'), 'utf8').trim()

  function start(args: readonly string[], env: Record<string, string>, stdin: 'ignore' | 'pipe'): ChildProcess {
    const child = spawn(executable, args, {
      cwd: folder,
      env: { ...environment, ...env },
      stdio: [stdin, 'pipe', 'pipe'],
    })
    children.push(child)
    return child
  }

  return {
    folder,
    dataDir,
    /** Writes infer.yaml. The free-space limit is off unless given, so that a small disk does not fail a test. */
    configure(config: { models?: object[]; limits?: object }): void {
      mkdirSync(dataDir, { recursive: true, mode: 0o700 })
      const limits = { min_free_disk: 0, ballast: 0, ...config.limits }
      writeFileSync(join(dataDir, 'infer.yaml'), stringify({ ...config, limits }))
    },
    /** Errors in the log that the test causes on purpose. */
    expectErrors(...these: RegExp[]): void {
      expected.push(...these)
    },
    secret,

    /** Runs a command until it exits. */
    async run(
      args: readonly string[],
      { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {},
    ) {
      const began = performance.now()
      const child = start(args, env, 'pipe')
      child.stdin!.on('error', () => {}).end(input)
      const [out, err, [code]] = await Promise.all([
        text(child.stdout!),
        text(child.stderr!),
        once(child, 'close') as Promise<[number | null]>,
      ])
      return { code, out, err, ms: performance.now() - began } satisfies Ended
    },

    /** Starts a server, on a free port unless `--listen` is among the arguments. */
    serve(args: readonly string[] = [], env: Record<string, string> = {}): Server {
      const child = start(['serve', '--listen', '127.0.0.1:0', ...args], env, 'ignore')
      const said = { out: '', err: '' }
      const ready = Promise.withResolvers<string>()
      let url: string | undefined
      child.stdout!.on('data', piece => {
        said.out += String(piece)
        url = /^ready (\S+)$/m.exec(said.out)?.[1]
        if (url !== undefined) ready.resolve(url)
      })
      child.stderr!.on('data', piece => (said.err += String(piece)))
      const ended = once(child, 'close').then(([code, signal]) => {
        ready.reject(new Error(`The server ended (${String(code ?? signal)}) before it was ready: ${said.err}`))
        return { code: code as number | null, signal: signal as NodeJS.Signals | null }
      })
      ready.promise.catch(() => {})
      const server: Server = {
        pid: child.pid!,
        ready: ready.promise,
        get url() {
          if (url === undefined) throw new Error('The server has not said its address yet.')
          return url
        },
        out: () => said.out,
        err: () => said.err,
        errors: () => said.err.split('\n').filter(line => line.includes('"level":"error"')),
        kill: signal => void child.kill(signal),
        ended,
        fetch: (path, { method, body, token = secret(), headers, signal } = {}) =>
          fetch(server.url + path, {
            method: method ?? (body === undefined ? 'GET' : 'POST'),
            headers: {
              authorization: `Bearer ${token}`,
              ...(body === undefined ? {} : { 'content-type': 'application/json' }),
              ...headers,
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
            ...(signal ? { signal } : {}),
          }),
      }
      servers.push(server)
      return server
    },

    /**
     * The processes of this home: every process with its folder in the environment, including engines and their
     * children.
     */
    processes: (): number[] => processesWith(folder),

    async [Symbol.asyncDispose]() {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      // Each of these was started in this folder by a server that has ended.
      await endProcessesWith(folder)
      rmSync(folder, { recursive: true, force: true })
      const errors = servers.flatMap(server => server.errors()).filter(line => !expected.some(one => one.test(line)))
      if (errors.length > 0) throw new Error(`The server logged errors:\n${errors.join('\n')}`)
    },
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended since it was listed.
  }
}

/** Ends every process that has the folder in its environment, and waits until they have ended. */
export async function endProcessesWith(folder: string): Promise<void> {
  await until('an empty machine', () => {
    const left = processesWith(folder)
    for (const pid of left) end(pid)
    return left.length === 0
  })
}

/** Every process that has the folder in its environment. A zombie has none, so each of them runs. */
export function processesWith(folder: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(name => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'latin1').includes(folder)
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Waits until `read` returns a value and returns it; `what` names the missing thing in the error. */
export async function until<Found>(
  what: string,
  look: () => Found | undefined | false | Promise<Found | undefined | false>,
  withinMs = 30_000,
): Promise<Found> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`Never seen within ${withinMs / 1000} s: ${what}`)
    await delay(10)
  }
}

/** A free port below the range for outgoing connections, so that it is still free after a restart. */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const probe = createServer().listen(port, '127.0.0.1')
    try {
      await once(probe, 'listening')
    } catch {
      continue
    }
    probe.close()
    await once(probe, 'close')
    return port
  }
}

export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** A percentile by the nearest rank. */
export function percentile(values: readonly number[], which: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((which / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** Prints a measured figure on one line. */
export const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** The sum of a metric over all samples with matching labels. */
export async function metric(server: Server, name: string, label = ''): Promise<number> {
  const lines = (await (await server.fetch('/metrics')).text()).split('\n')
  const those = lines.filter(
    line => line.startsWith(name) && /[ {]/.test(line[name.length] ?? '') && line.includes(label),
  )
  return those.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}
