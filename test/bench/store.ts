import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { newId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { openSqliteStore } from '../../core/store/sqlite/store.ts'
import type { NewJob } from '../../core/store/store.ts'
import { openBareWriter } from './bare-writer.ts'

/**
 * Measures durable acknowledgements per second with 256 submitters that use idempotency keys and each wait for one
 * acknowledgement before the next request. Compares with minimal code in the same run: one thread, one table, the same
 * pragmas, one commit for everything queued. Prints one line.
 */
const submitters = 256
/** Rounds alternate, so that other load on the machine slows both; the median counts. */
const rounds = 3
const seconds = Number(process.argv[2] ?? 1.5)
/** The monitor records the interval between two of its timers; the part above this is delay. Milliseconds. */
const resolutionMs = 1
const inputs = JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(300) }] })

const job = (at: number): NewJob => ({
  id: newId('job'),
  organizationId: 'org_bench',
  tokenId: 'tok_bench',
  task: 'std/chat-completion',
  modelId: 'tiny-chat',
  inputs,
  slug: null,
  priority: 0,
  rank: at * 1000,
  maxAttempts: 3,
  startBy: null,
  timeoutMs: null,
  retentionMs: null,
  notBefore: at,
  createdAt: at,
  metadata: null,
  idempotency: { key: `POST /api/jobs ${randomUUID()}`, bodyHash: 'a'.repeat(64) },
})

async function measure(submit: (job: NewJob) => Promise<unknown>): Promise<{ rate: number; p99: number }> {
  let acknowledged = 0
  const end = new AbortController()
  const submitter = async () => {
    while (!end.signal.aborted) {
      await submit(job(Date.now()))
      acknowledged += 1
    }
  }
  const all = Array.from({ length: submitters }, submitter)
  const after = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
  await after(300)
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  const [start, before] = [performance.now(), acknowledged]
  await after(seconds * 1000)
  const rate = ((acknowledged - before) / (performance.now() - start)) * 1000
  delay.disable()
  end.abort()
  await Promise.all(all)
  return { rate, p99: delay.percentile(99) / 1e6 - resolutionMs }
}

const directory = mkdtempSync(join(tmpdir(), 'infer-bench-'))
try {
  const bare = openBareWriter(directory)
  const store = await openSqliteStore({
    dataDir: join(directory, 'data'),
    log: openLog('warn'),
    minFreeBytes: 0,
    ballastBytes: 0,
    onFatal: failure => {
      throw failure
    },
  })
  await store.organizations.create({
    id: 'org_bench',
    name: 'bench',
    plan: 'enterprise',
    requestsPerMinute: null,
    jobsPerMinute: null,
    createdAt: Date.now(),
  })
  const results = []
  for (let round = 0; round < rounds; round++) {
    const floor = await measure(bare.submit)
    const ours = await measure(it => store.jobs.submit(it))
    results.push({ floor, ours, ratio: ours.rate / floor.rate })
  }
  const { commits, commands } = store.stats()
  await store.close()
  bare.close()
  const { floor, ours, ratio } = results.toSorted((a, b) => a.ratio - b.ratio)[Math.floor(rounds / 2)]!
  process.stdout.write(
    `store: ${Math.round(ours.rate)} durable acks/s at ${submitters} submitters, ${(commands / commits).toFixed(0)} a commit, ` +
      `main loop delay p99 ${ours.p99.toFixed(1)} ms; bare writer ${Math.round(floor.rate)}/s, p99 ${floor.p99.toFixed(1)} ms; ` +
      `ratio ${ratio.toFixed(2)} of ${results.map(round => round.ratio.toFixed(2)).join(' ')}\n`,
  )
} finally {
  rmSync(directory, { recursive: true, force: true })
}
