import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import nodeFlags from '../../bin/node-flags.json' with { type: 'json' }
import {
  closeBench,
  cpuOf,
  folder,
  limitedToken,
  load,
  median,
  openBench,
  type Requests,
  rssOf,
  type Served,
  type Streams,
  shuffled,
  start,
} from './_gateway.ts'
import { startPeers } from './_peers.ts'

/**
 * Measures what the gateway adds to a request. The same requests go to an instant engine directly, through infer with
 * all features, and through a minimal proxy of h3 and undici, in alternation. Prints one line. Run:
 * `npx node test/bench/gateway.ts`, with `--seconds N` for the length of a round. Uses build/infer if it is as new as
 * dist/main.cjs, else that. Then it measures llama-swap and LiteLLM in the same way, if they are on the PATH.
 * `gateway-against.ts` compares two builds.
 */
const seconds = Number(process.argv[process.argv.indexOf('--seconds') + 1] || 3) || 3
const rounds = 5

try {
  const { engine, enginePort, proxy, config } = await openBench()
  // An executable that is older than the build would be measured in its place.
  const builtAt = statSync('dist/main.cjs', { throwIfNoEntry: false })?.mtimeMs ?? 0
  const packed = existsSync('build/infer') && statSync('build/infer').mtimeMs >= builtAt
  const [file, before] = packed ? ['build/infer', []] : [process.execPath, [...nodeFlags, 'dist/main.cjs']]
  const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: join(folder, 'data') }
  const serve = (more: NodeJS.ProcessEnv = {}) =>
    start(file, [...before, 'serve', '--config', config, '--listen', '127.0.0.1:0'], /(http:\/\/127\.0\.0\.1:\d+)/, {
      ...env,
      ...more,
    })
  // A separate one: memory that V8 releases while idle must be allocated again under load. It releases 20 MB of the start
  // when nothing has been allocated for about ten seconds.
  const resting = await serve({ INFER_DATA_DIR: join(folder, 'resting') })
  await delay(15_000)
  const idle = rssOf(resting.pid)
  process.kill(resting.pid, 'SIGKILL')
  const infer = await serve()
  const port = Number(new URL(infer.match[1]!).port)
  const root = readFileSync(join(folder, 'data', 'root-token'), 'utf8').trim()
  const token = await limitedToken(port, root, file, before, env)

  const targets = {
    direct: [enginePort, '/v1/chat/completions', '-'],
    proxy: [Number(proxy.match[1]), '/v1/chat/completions', '-'],
    infer: [port, '/std/v1/chat/completions', token],
  } as const
  type Name = keyof typeof targets
  const ask = (name: Name, connections: number) =>
    load<Requests>(['requests', ...targets[name], connections, seconds * 1000])

  const rate: Record<Name, number[]> = { direct: [], proxy: [], infer: [] }
  const alone: Record<Name, number[]> = { direct: [], proxy: [], infer: [] }
  // V8's compilation is not measured: it goes on for some 100,000 requests, and for as many chunks.
  for (const name of ['proxy', 'infer'] as const)
    for (let sent = 0; sent < 100_000; ) sent += (await ask(name, 64)).perSecond * seconds
  for (let round = 0; round < rounds; round++) {
    for (const name of ['proxy', 'infer'] as const) rate[name].push((await ask(name, 64)).perSecond)
    process.stderr.write(
      `round ${round + 1} of ${rounds}: proxy ${rate.proxy.at(-1)!.toFixed(0)}/s, infer ${rate.infer.at(-1)!.toFixed(0)}/s\n`,
    )
  }

  for (let round = 0; round < rounds; round++)
    for (const name of ['direct', 'proxy', 'infer'] as const) alone[name].push((await ask(name, 1)).p50)

  const stream: Record<Name, { gap: number[]; cpu: number[] }> = {
    direct: { gap: [], cpu: [] },
    proxy: { gap: [], cpu: [] },
    infer: { gap: [], cpu: [] },
  }
  const pids = { direct: engine.pid, proxy: proxy.pid, infer: infer.pid }
  const askStreams = (name: Name, onCounting?: () => void) =>
    load<Streams>(['streams', ...targets[name], 200, seconds * 2000], onCounting)
  for (const name of ['proxy', 'infer'] as const) for (let time = 0; time < 2; time++) await askStreams(name)
  for (let round = 0; round < 3; round++)
    for (const name of ['direct', 'proxy', 'infer'] as const) {
      let used = 0
      const result = await askStreams(name, () => (used = cpuOf(pids[name])))
      stream[name].gap.push(result.gapP99)
      stream[name].cpu.push(((cpuOf(pids[name]) - used) * 1000) / result.chunks)
      process.stderr.write(
        `streams ${name}: gap p99 ${result.gapP99.toFixed(2)} ms, ${stream[name].cpu.at(-1)!.toFixed(1)} µs a chunk\n`,
      )
    }

  const ratio = median(rate.infer.map((value, at) => value / rate.proxy[at]!))
  const added = median(alone.infer) - median(alone.direct)
  const gap = median(stream.infer.gap) - median(stream.direct.gap)
  const chunk = median(stream.infer.cpu) / median(stream.proxy.cpu)
  console.log(
    `gateway (${packed ? 'packed' : 'bundle'}): ${median(rate.infer).toFixed(0)} of the minimal proxy's ${median(rate.proxy).toFixed(0)} requests/s at 64 connections = ${ratio.toFixed(2)} (bar 0.70); ` +
      `added p50 ${added.toFixed(3)} ms at 1 connection (bar 0.20; the proxy adds ${(median(alone.proxy) - median(alone.direct)).toFixed(3)}); ` +
      `200 streams: added gap p99 ${gap.toFixed(2)} ms (bar 1; the proxy adds ${(median(stream.proxy.gap) - median(stream.direct.gap)).toFixed(2)}), ` +
      `${median(stream.infer.cpu).toFixed(1)} µs a chunk = ${chunk.toFixed(2)} x the proxy (bar 1.15); idle RSS ${idle.toFixed(0)} MB (bar 120), ${rssOf(infer.pid).toFixed(0)} MB after`,
  )

  const peers = await startPeers(enginePort)
  const own = { pid: infer.pid, address: targets.infer }
  if (Object.keys(peers).length > 0) console.log((await besideEachOther({ infer: own, ...peers })).join('\n'))
} finally {
  closeBench()
}

/** Measures servers in turns of random order. A line for each: requests/s in sum, and processor time. */
async function besideEachOther(served: Record<string, Served>): Promise<string[]> {
  const found = Object.keys(served).map(name => ({
    name,
    rate: [] as number[],
    request: [] as number[],
    chunk: [] as number[],
  }))
  for (let round = 0; round <= rounds; round++)
    for (const of of shuffled(found)) {
      const { pid, address } = served[of.name]!
      let before = 0
      const begin = () => (before = cpuOf(pid))
      const { perSecond } = await load<Requests>(['requests', ...address, 64, seconds * 1000], begin)
      const request = ((cpuOf(pid) - before) * 1000) / (perSecond * seconds)
      const { chunks } = await load<Streams>(['streams', ...address, 50, seconds * 1000], begin)
      const chunk = ((cpuOf(pid) - before) * 1000) / chunks
      // The first round is for what compiles while it runs.
      if (round === 0) continue
      of.rate.push(perSecond)
      of.request.push(request)
      of.chunk.push(chunk)
    }
  return found.map(
    ({ name, rate, request, chunk }) =>
      `${name}: ${median(rate).toFixed(0)} requests/s at 64 connections, ${median(request).toFixed(0)} µs of processor time a request, ${median(chunk).toFixed(1)} µs a chunk of 50 streams`,
  )
}
