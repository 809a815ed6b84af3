import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { stringify } from 'yaml'
import { endProcessesWith, lastingPort, processesWith, until } from '../e2e/_home.ts'
import type { Cards } from './cards.ts'
import { modelEntries } from './models.ts'

/** An organization of the box and a token of it. */
export interface Organization {
  name: string
  secret: string
}

export type Server = Awaited<ReturnType<typeof openServer>>

/**
 * `infer serve` in an empty home with the fake cards. It keeps its address over restarts. `packed`: the executable, else
 * the build of this source.
 */
export async function openServer(folder: string, cards: Cards, { packed = false } = {}) {
  const [home, root] = [join(folder, 'home'), join(import.meta.dirname, '../..')]
  const dataDir = join(home, 'data')
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  writeFileSync(join(dataDir, 'infer.yaml'), stringify({ models: modelEntries(cards) }))
  const url = `http://127.0.0.1:${await lastingPort()}`
  const [file, ...before] = packed ? [join(root, 'build/infer')] : [process.execPath, join(root, 'bin/infer.js')]
  const env = { HOME: home, INFER_DATA_DIR: dataDir, PATH: `${cards.binaries}:${process.env.PATH ?? ''}` }
  let child: ChildProcess | undefined
  let log = ''

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
    rootToken: (): string => readFileSync(join(dataDir, 'root-token'), 'utf8').trim(),
    /** Ids of the processes that the server has started and that still run, with itself. */
    processes: (): number[] => processesWith(home),
    /** Why a device is not used, as the server says; null if it is. */
    async faultOf(id: string): Promise<string | null> {
      const headers = { authorization: `Bearer ${readFileSync(join(dataDir, 'root-token'), 'utf8').trim()}` }
      const { devices } = (await (await fetch(`${url}/api/system/status`, { headers })).json()) as {
        devices: { id: string; fault: string | null }[]
      }
      return devices.find(one => one.id === id)?.fault ?? null
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
export async function createOrganization({ url, rootToken }: Server, name: string): Promise<Organization> {
  const post = async (path: string, body: object) => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${rootToken()}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`POST ${path} answered ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as { organization: { id: string }; secret: string }
  }
  const { organization } = await post('/api/organizations', { name })
  const scopes = ['user:read', 'user:write']
  const { secret } = await post(`/api/organizations/${organization.id}/tokens`, { name, scopes })
  return { name, secret }
}
