import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { storePendingJobs } from './pending-jobs.ts'
import { openBench, rssMb } from './server.ts'

/**
 * Measures what opening event streams at once costs other clients while jobs run: `/livez` over new connections and the
 * memory of the server, while readers open `/api/events` of an organization with many pending jobs. Prints one line, which
 * ends with MISSED when a bar was missed; the exit code is then 1. Run: `npx node test/bench/streams.ts`, with `--count`
 * streams and `--pending` jobs.
 */
const { values } = parseArgs({
  options: { count: { type: 'string', default: '2000' }, pending: { type: 'string', default: '70000' } },
})
const [count, pending] = [Number(values.count), Number(values.pending)]
// The young generation of V8 takes 50 MB of it.
const bars = { livezMs: 250, rssMb: 110 }
const bench = openBench()

/** Milliseconds of one `/livez` over a connection of its own. */
const livez = (port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const began = performance.now()
    get({ port, host: '127.0.0.1', path: '/livez', agent: false }, response => {
      response.resume().once('end', () => resolve(performance.now() - began))
    }).once('error', reject)
  })

/** How long the engine takes for a job: each that begins or ends is an event for every stream. */
const jobMs = 1_000
const answer = JSON.stringify({
  object: 'list',
  model: 'held',
  data: [{ object: 'embedding', index: 0, embedding: [0, 1] }],
  usage: { prompt_tokens: 1, total_tokens: 1 },
})
const engine = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  setTimeout(() => response.end(answer), jobMs)
}).listen(0, '127.0.0.1')
try {
  await once(engine, 'listening')
  const secret = await storePendingJobs(bench.dataDir, pending)
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`
  const { pid, port } = await bench.serve({
    models: [{ id: 'held', engine: 'remote', url, concurrency: 1, tasks: ['std/embeddings'] }],
    limits: { min_free_disk: 0, ballast: 0, streams_per_token: count, streams_per_organization: count },
  })
  // The first seconds of a server are its own.
  for (let at = 0; at < 30; at++) {
    await livez(port)
    await delay(100)
  }
  const startMb = rssMb(pid)

  const times: number[] = []
  let maxMb = startMb
  const over = new AbortController()
  const probe = async () => {
    while (!over.signal.aborted) {
      times.push(await livez(port))
      maxMb = Math.max(maxMb, rssMb(pid))
      await delay(5)
    }
  }
  const readers = bench.script('open-streams.ts', [port, secret, count], /^([\d.]+)$/)
  const probing = probe()
  const openedMs = Number((await readers).match)
  await delay(1_000)
  over.abort()
  await probing

  const worst = Math.max(...times)
  const missed = worst > bars.livezMs || maxMb - startMb > bars.rssMb
  console.log(
    `streams: ${count} event streams opened at once with ${pending} pending jobs: all had their snapshot after ${openedMs.toFixed(0)} ms; ` +
      `/livez at most ${worst.toFixed(0)} ms (bar ${bars.livezMs}) in ${times.length} requests; ` +
      `RSS ${startMb.toFixed(0)} MB before, at most +${(maxMb - startMb).toFixed(0)} MB (bar ${bars.rssMb}), +${(rssMb(pid) - startMb).toFixed(0)} MB after${missed ? ' MISSED' : ''}`,
  )
  if (missed) process.exitCode = 1
} finally {
  bench.close()
  engine.closeAllConnections()
  engine.close()
}
