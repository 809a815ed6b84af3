import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import nodeFlags from '../../bin/node-flags.json' with { type: 'json' }
import {
  closeBench,
  folder,
  load,
  median,
  openBench,
  ownCpuOf,
  type Requests,
  type Streams,
  start,
  startProxy,
} from './_gateway.ts'

/**
 * Measures infer with 1, 2 and 4 gateway processes, in turns, beside as many minimal proxies on one port: the processor time
 * of all processes for a request and for a chunk of a stream, requests a second in sum, and the messages between the
 * processes. Prints a line for each. What the proxies need more with several processes is not infer's own. Run after `npm run build`:
 * `npx node test/bench/fronts.ts`, with `--seconds N` for the length of a measurement, `--rounds N`, `--processes 1,8`
 * for other counts. `--each` gives every process the connections that one has alone: what a process writes in one turn it writes
 * together, so that one with few connections needs more time for each request.
 */
const option = (name: string, usual: string): string => {
  const at = process.argv.indexOf(name)
  return (at < 0 ? undefined : process.argv[at + 1]) ?? usual
}
const ms = Number(option('--seconds', '3')) * 1_000
const rounds = Number(option('--rounds', '3'))
const each = process.argv.includes('--each')
/** 64 connections for requests, and 200 streams. */
const clientsOf = (processes: number) =>
  each ? { requests: 64 * processes, streams: 200 * processes } : { requests: 64, streams: 200 }
/** After so many V8 compiles little more of a process. By their number, not by time: a slow machine compiles as much. */
const compiledAfter = { requests: 40_000, chunks: 60_000 }
const processCounts = option('--processes', '1,2,4').split(',').map(Number)

/** Something that answers chats in several processes. */
interface Measured {
  target: readonly [port: number, path: string, token: string]
  /** Processor time so far of all its processes, and of the first one alone, milliseconds. */
  used: () => { all: number; first: number }
  /** Counts of infer so far; undefined of a proxy. */
  counts: () => Promise<Counts | undefined>
}

interface Counts {
  answered: number
  /** Of these, by gateway processes themselves. */
  local: number
  messages: number
}

/** Medians over the rounds; times in microseconds. */
interface Result {
  perSecond: number
  request: number
  chunk: number
  /** Part of the processor time of requests. */
  first: number
  local: number
  messages: number
}

/** The gateway processes of a server. */
const frontsOf = (pid: number): number[] =>
  readdirSync('/proc').flatMap(name => {
    try {
      const [, parent] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return Number(parent) === pid && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('__front')
        ? [Number(name)]
        : []
    } catch {
      return []
    }
  })

const usedBy = (pids: readonly number[]) => () => {
  const each = pids.map(ownCpuOf)
  return { all: each.reduce((sum, one) => sum + one, 0), first: each[0]! }
}

async function serveInfer(count: number, config: string): Promise<Measured> {
  const data = join(folder, `data-${count}`)
  const own = join(folder, `infer-${count}.yaml`)
  writeFileSync(own, readFileSync(config, 'utf8').replace(/^gateway_processes: .*/, `gateway_processes: ${count}`))
  const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: data, NODE_OPTIONS: nodeFlags.join(' ') }
  const { pid, match } = await start(
    process.execPath,
    ['dist/main.cjs', 'serve', '--config', own, '--listen', '127.0.0.1:0'],
    /(http:\/\/127\.0\.0\.1:\d+)/,
    env,
  )
  const path = '/std/v1/chat/completions'
  return {
    target: [Number(new URL(match[1]!).port), path, readFileSync(join(data, 'root-token'), 'utf8').trim()],
    used: usedBy([pid, ...frontsOf(pid)]),
    async counts() {
      const text = await (await fetch(`${match[1]!}/metrics`)).text()
      const lines = text.split('\n')
      const count = (name: string) =>
        Number(lines.find(line => line.startsWith(`${name} `))?.slice(name.length + 1) ?? 0)
      return {
        answered: count(`infer_http_requests_total{route="POST ${path}",status="200"}`),
        local: count('infer_front_requests_total'),
        messages: count('infer_front_messages_total'),
      }
    },
  }
}

async function serveProxies(count: number, enginePort: number): Promise<Measured> {
  const first = await startProxy(enginePort)
  const port = Number(first.match[1])
  const others = await Promise.all(Array.from({ length: count - 1 }, () => startProxy(enginePort, port)))
  return {
    target: [port, '/v1/chat/completions', '-'],
    used: usedBy([first, ...others].map(({ pid }) => pid)),
    counts: async () => undefined,
  }
}

/**
 * Measures both once. The counts are read outside of what is measured, because that costs the first process time. What comes
 * before is not measured: while others were, V8 has given memory and code back.
 */
async function measure({ target, used, counts }: Measured, clients: ReturnType<typeof clientsOf>): Promise<Result> {
  await load<Requests>(['requests', ...target, clients.requests, ms])
  const countsBefore = await counts()
  let before = used()
  const { perSecond } = await load<Requests>(['requests', ...target, clients.requests, ms], () => (before = used()))
  const after = used()
  const countsAfter = await counts()
  const all = after.all - before.all
  const answered = countsAfter && countsBefore ? countsAfter.answered - countsBefore.answered : 0
  let beforeStreams = used()
  const { chunks } = await load<Streams>(['streams', ...target, clients.streams, ms], () => (beforeStreams = used()))
  const part = (name: 'local' | 'messages') =>
    answered > 0 ? (countsAfter![name] - countsBefore![name]) / answered : 0
  return {
    perSecond,
    request: (all * 1_000) / ((perSecond * ms) / 1_000),
    chunk: ((used().all - beforeStreams.all) * 1_000) / chunks,
    first: (after.first - before.first) / all,
    local: part('local'),
    messages: part('messages'),
  }
}

const medians = (results: readonly Result[]): Result =>
  Object.fromEntries(
    Object.keys(results[0]!).map(name => [name, median(results.map(result => result[name as keyof Result]))]),
  ) as unknown as Result

try {
  const { config, enginePort } = await openBench()
  const pairs: { count: number; infer: Measured; proxies: Measured; results: Result[]; bare: Result[] }[] = []
  for (const count of processCounts) {
    const [infer, proxies] = [await serveInfer(count, config), await serveProxies(count, enginePort)]
    pairs.push({ count, infer, proxies, results: [], bare: [] })
    const clients = clientsOf(count)
    for (const { target } of [infer, proxies]) {
      for (let done = 0; done < count * compiledAfter.requests; )
        done += ((await load<Requests>(['requests', ...target, clients.requests, ms])).perSecond * ms) / 1_000
      for (let done = 0; done < count * compiledAfter.chunks; )
        done += (await load<Streams>(['streams', ...target, clients.streams, ms])).chunks
    }
  }
  for (let round = 0; round < rounds; round++)
    for (const { count, infer, proxies, results, bare } of pairs) {
      results.push(await measure(infer, clientsOf(count)))
      bare.push(await measure(proxies, clientsOf(count)))
    }
  const [least, leastBare] = [medians(pairs[0]!.results), medians(pairs[0]!.bare)]
  for (const { count, results, bare } of pairs) {
    const [own, proxy] = [medians(results), medians(bare)]
    const times = (name: 'request' | 'chunk') =>
      `${(own[name] / least[name]).toFixed(2)} x of ${processCounts[0]} (${(proxy[name] / leastBare[name]).toFixed(2)} x for as many minimal proxies)`
    console.log(
      `${count} gateway process${count === 1 ? '' : 'es'}: ${own.perSecond.toFixed(0)} requests/s; ` +
        `processor time ${own.request.toFixed(0)} µs a request, ${times('request')}, ` +
        `${own.chunk.toFixed(1)} µs a chunk, ${times('chunk')}; the first process ${(own.first * 100).toFixed(1)} % of that of requests; ` +
        `${(own.local * 100).toFixed(0)} % answered by gateway processes, ${(own.messages * 1_000).toFixed(0)} messages per 1,000 requests`,
    )
  }
} finally {
  closeBench()
}
