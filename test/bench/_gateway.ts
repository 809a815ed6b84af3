import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import nodeFlags from '../../bin/node-flags.json' with { type: 'json' }

/** What the benches of the gateway share: an instant engine, a minimal proxy, servers of infer, and load for them. */
export const gatewayProcesses = Number(process.env.INFER_BENCH_FRONTS) || 1
export const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const children: ChildProcess[] = []
const here = (name: string) => join(import.meta.dirname, name)

export function start(
  file: string,
  args: string[],
  wanted: RegExp,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ pid: number; match: RegExpExecArray }> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  children.push(child)
  return new Promise((resolve, reject) => {
    const look = (line: string) => {
      const match = wanted.exec(line)
      if (match) resolve({ pid: child.pid!, match })
    }
    createInterface({ input: child.stdout }).on('line', look)
    createInterface({ input: child.stderr }).on('line', look)
    child.once('exit', code => reject(new Error(`${file} ${args.join(' ')} exited (${code})`)))
  })
}

export async function load<T>(args: (string | number)[], onCounting?: () => void): Promise<T> {
  const child = spawn(process.execPath, [here('load.ts'), ...args.map(String)], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
    if (chunk.toString().includes('counting')) onCounting?.()
  })
  const code = await new Promise(resolve => child.once('exit', resolve))
  if (code !== 0) throw new Error(`The load failed: ${err}`)
  return JSON.parse(out) as T
}

interface ProcessStat {
  pid: number
  parent: number
  /** Processor time so far, milliseconds (a tick is 10 ms). */
  cpu: number
}

function statOf(pid: number): ProcessStat {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return { pid, parent: Number(fields[1]), cpu: (Number(fields[11]) + Number(fields[12])) * 10 }
}

/** All processes; one that ends meanwhile is left out. */
const allProcesses = (): ProcessStat[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      return statOf(Number(name))
    } catch {
      return []
    }
  })

/** Processor time so far of one process, with all its threads, milliseconds. */
export const ownCpuOf = (pid: number): number => statOf(pid).cpu

/**
 * Processor time so far of a process and those below it, with all their threads, milliseconds: a server may be several
 * processes.
 */
export function cpuOf(pid: number): number {
  const all = allProcesses()
  const sumOf = (one: ProcessStat): number =>
    all.filter(({ parent }) => parent === one.pid).reduce((sum, child) => sum + sumOf(child), one.cpu)
  return sumOf(all.find(one => one.pid === pid)!)
}
export const rssOf = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
export const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** The items in random order: in a fixed one a server gains or loses by what comes before it. */
export const shuffled = <Item>(items: readonly Item[]): Item[] =>
  items
    .map(item => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)

export type Requests = { perSecond: number; p50: number; p99: number }
export type Streams = { chunks: number; gapP50: number; gapP99: number; gapMax: number }

/** Starts a minimal proxy, with the flags that infer has, on a free port, or on that of another. */
export const startProxy = (enginePort: number, port = 0) =>
  start(process.execPath, [...nodeFlags, here('proxy.ts'), String(enginePort), String(port)], /^(\d+)$/)

/** Starts the engine and the proxy, and writes the configuration of servers that offer the engine as a model. */
export async function openBench() {
  const engine = await start(process.execPath, [...nodeFlags, here('instant.ts')], /^(\d+)$/)
  const enginePort = Number(engine.match[1])
  const proxy = await startProxy(enginePort)
  const config = join(folder, 'infer.yaml')
  writeFileSync(
    config,
    `gateway_processes: ${gatewayProcesses}\nmodels:\n  - id: bench\n    engine: remote\n    url: http://127.0.0.1:${enginePort}/v1\n    concurrency: 1024\n    price: { input_per_million_tokens: 1, output_per_million_tokens: 2 }\n`,
  )
  return { engine, enginePort, proxy, config }
}

/** A server of chats: its process, and where a load client sends them. */
export interface Served {
  pid: number
  address: readonly [port: number, path: string, token: string]
}

export const servedBy = ({ pid, match }: { pid: number; match: RegExpExecArray }): Served => ({
  pid,
  address: [Number(match[1]), '/v1/chat/completions', '-'],
})

/** The flags of Node that belong to a bundle of infer: an older build has its own. */
const flagsOf = (file: string): string[] =>
  JSON.parse(readFileSync(join(dirname(file), '../bin/node-flags.json'), 'utf8')) as string[]

/** Starts a bundle of infer with a data directory of this name, and makes a token for it. */
export async function serve(name: string, file: string, config: string): Promise<Served> {
  const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: join(folder, name) }
  const before = [...flagsOf(file), file]
  const { pid, match } = await start(
    process.execPath,
    [...before, 'serve', '--config', config, '--listen', '127.0.0.1:0'],
    /(http:\/\/127\.0\.0\.1:\d+)/,
    env,
  )
  const port = Number(new URL(match[1]!).port)
  const root = readFileSync(join(folder, name, 'root-token'), 'utf8').trim()
  const token = await limitedToken(port, root, process.execPath, before, env)
  return { pid, address: [port, '/std/v1/chat/completions', token] }
}

/** Ends all processes and removes their files. */
export function closeBench(): void {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

/** A token whose organization has rate limits too high to be reached: the limiter is part of the measurement. */
export async function limitedToken(
  port: number,
  root: string,
  file: string,
  before: string[],
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const run = async <T>(...args: string[]) => {
    const child = spawn(file, [...before, ...args, '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    await new Promise(resolve => child.once('exit', resolve))
    return JSON.parse(out) as T
  }
  const limits = ['--jobs-per-minute', '100000000', '--requests-per-minute', '100000000']
  const { organization } = await run<{ organization: { id: string } }>('org', 'create', 'bench', ...limits)
  const { secret } = await run<{ secret: string }>('token', 'create', '--org', organization.id, '--name', 'bench')
  const me = await fetch(`http://127.0.0.1:${port}/api/me`, { headers: { authorization: `Bearer ${secret}` } })
  if (!me.ok || !root) throw new Error(`The bench token does not work: ${await me.text()}`)
  return secret
}
