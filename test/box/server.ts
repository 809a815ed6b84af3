import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { stringify } from 'yaml'
import { endProcessesWith, lastingPort, processesWith, until } from '../e2e/_home.ts'

/** An organization of the box and a token of it. */
export interface Organization {
  name: string
  secret: string
}

export type Server = Awaited<ReturnType<typeof openServer>>

/**
 * `infer serve` in an empty home with these models, and these variables besides. It keeps its address over restarts.
 * `packed`: the executable, else the build of this source.
 */
export async function openServer(
  folder: string,
  models: readonly object[],
  { variables = {}, packed = false }: { variables?: Record<string, string | undefined>; packed?: boolean },
) {
  const [home, root] = [join(folder, 'home'), join(import.meta.dirname, '../..')]
  const dataDir = join(home, 'data')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  writeFileSync(join(dataDir, 'infer.yaml'), stringify({ models }))
  const url = `http://127.0.0.1:${await lastingPort()}`
  const [file, ...before] = packed ? [join(root, 'build/infer')] : [process.execPath, join(root, 'bin/infer.js')]
  const env = { HOME: home, INFER_DATA_DIR: dataDir, PATH: process.env.PATH, ...variables }
  let child: ChildProcess | undefined
  let log = ''

  const rootToken = (): string => readFileSync(join(dataDir, 'root-token'), 'utf8').trim()

  async function start(): Promise<void> {
    const began = spawn(file, [...before, 'serve', '--listen', url.slice('http://'.length)], {
      cwd: home,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = began
    began.stdout.resume()
    began.stderr.on('data', piece => (log += String(piece)))
    await until('a ready server', async () => {
      if (began.exitCode !== null) throw new Error(`The server ended before it was ready:\n${log}`)
      return (await fetch(`${url}/readyz`).catch(() => undefined))?.status === 200
    })
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ended = once(child!, 'exit')
    child!.kill(signal)
    await ended
  }

  return {
    url,
    start,
    end,
    /** What the server has written to its log, over all its starts. */
    log: () => log,
    rootToken,
    /** Ids of the processes that the server has started and that still run, with itself. */
    processes: (): number[] => processesWith(home),
    /** Sends a request as the operator. Rejects unless the answer is a success. */
    async ask<T>(path: string, body?: object): Promise<T> {
      const answer = await fetch(url + path, {
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
        headers: { authorization: `Bearer ${rootToken()}`, 'content-type': 'application/json' },
      })
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`)
      return (await answer.json()) as T
    },
    /** What `infer doctor` says of the GPUs. */
    async doctor(): Promise<string> {
      const child = spawn(file, [...before, 'doctor', '--json'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
      const { findings } = JSON.parse(await text(child.stdout)) as { findings: { name: string; detail: string }[] }
      return findings.flatMap(({ name, detail }) => (name.startsWith('GPU') ? detail : [])).join('; ')
    },
    /** What `infer db check` says; empty if it finds nothing. */
    checkDatabase(): string {
      const { status, stdout, stderr } = spawnSync(file, [...before, 'db', 'check'], { env, encoding: 'utf8' })
      return status === 0 ? '' : `infer db check ended with ${status}: ${stdout}${stderr}`
    },
    async close(): Promise<void> {
      if (child && child.exitCode === null && child.signalCode === null) await end('SIGKILL')
      await endProcessesWith(home)
    },
  }
}

/** Creates an organization with the limits of its plan, and a token. */
export async function createOrganization(server: Server, name: string): Promise<Organization> {
  const post = (path: string, body: object) => server.ask<{ organization: { id: string }; secret: string }>(path, body)
  const { organization } = await post('/api/organizations', { name })
  const scopes = ['user:read', 'user:write']
  const { secret } = await post(`/api/organizations/${organization.id}/tokens`, { name, scopes })
  return { name, secret }
}
