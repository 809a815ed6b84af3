import { get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { storePendingJobs } from './pending-jobs.ts'
import { openBench } from './server.ts'

/**
 * Measures how long a server takes from its start to `/readyz` after `kill -9`, with many pending jobs. Prints one line,
 * which ends with MISSED when the bar was missed; the exit code is then 1. Run: `npx node test/bench/restarts.ts`, with
 * `--kills` and `--pending` jobs.
 */
const { values } = parseArgs({
  options: { kills: { type: 'string', default: '100' }, pending: { type: 'string', default: '70000' } },
})
const [kills, pending] = [Number(values.kills), Number(values.pending)]
const barMs = 1_000
const bench = openBench()

const isReady = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    get({ port, host: '127.0.0.1', path: '/readyz', agent: false }, response => {
      response.resume().once('end', () => resolve(response.statusCode === 200))
    }).once('error', () => resolve(false))
  })

try {
  await storePendingJobs(bench.dataDir, pending)
  const config = {
    // Nothing listens there: its jobs stay pending.
    models: [{ id: 'held', engine: 'remote', url: 'http://127.0.0.1:9/v1', tasks: ['std/embeddings'] }],
    limits: { min_free_disk: 0, ballast: 0 },
  }
  const times: number[] = []
  for (let at = 0; at <= kills; at++) {
    const startedAt = performance.now()
    const { pid, port } = await bench.serve(config)
    while (!(await isReady(port))) await delay(5)
    // The first start has no kill before it.
    if (at > 0) times.push(performance.now() - startedAt)
    await delay(200)
    const exited = bench.exit(pid)
    process.kill(pid, 'SIGKILL')
    await exited
  }
  times.sort((left, right) => left - right)
  const quantile = (part: number) => times[Math.min(times.length - 1, Math.floor(times.length * part))]!
  const missed = quantile(0.99) > barMs
  console.log(
    `restarts: ready after kill -9 with ${pending} pending jobs, ${kills} times: p50 ${quantile(0.5).toFixed(0)} ms, ` +
      `p99 ${quantile(0.99).toFixed(0)} ms (bar ${barMs})${missed ? ' MISSED' : ''}`,
  )
  if (missed) process.exitCode = 1
} finally {
  bench.close()
}
