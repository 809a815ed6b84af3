import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Admitted } from '../../core/admission/admission.ts'
import { newId } from '../../core/ids.ts'
import { openJobs } from '../../core/jobs/jobs.ts'
import { openLog } from '../../core/log.ts'
import { openSqliteStore } from '../../core/store/sqlite/store.ts'
import type { NewJob, Store } from '../../core/store/store.ts'
import { admittedWork } from '../core/_admission.ts'
import { slotsOnly } from '../core/jobs/_fleet.ts'
import { done, runner } from '../core/jobs/_runs.ts'
import { openBareWriter } from './bare-writer.ts'
import { hasRedis, openBullmq } from './bullmq.ts'

/**
 * Measures durable jobs: acknowledgements per second with 256 submitters, jobs per second from submission to result when
 * running one costs nothing, and the time of a claim with 1,000 and with 100,000 pending jobs. Compares them in the same
 * run with minimal code that is as durable (one thread, one table, one commit for everything queued) and with BullMQ on
 * Redis with `appendfsync always`. Prints one line.
 */
const submitters = 256
const slots = 64
/** The contenders alternate, so that other load on the machine slows all; the median counts. */
const rounds = 3
const seconds = Number(process.argv[2] ?? 1.5)
const [few, many] = [1_000, 100_000]
const claimsAtOnce = 64
const claimRounds = 40
const inputs = JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(300) }] })

/** Parsed once: a model for each job would be a quarter of the time of the main thread. */
const { model } = admittedWork({
  organizationId: 'org_bench',
  tokenId: 'tok_bench',
  task: 'std/chat-completion',
  modelId: 'tiny-chat',
})

const job = (at = Date.now()): Omit<NewJob, 'rank'> => ({
  id: newId('job'),
  organizationId: 'org_bench',
  tokenId: 'tok_bench',
  task: 'std/chat-completion',
  modelId: 'tiny-chat',
  slug: null,
  inputs,
  priority: 0,
  maxAttempts: 3,
  startBy: null,
  timeoutMs: null,
  retentionMs: null,
  notBefore: at,
  createdAt: at,
  metadata: null,
  idempotency: { key: `POST /api/jobs ${randomUUID()}`, bodyHash: 'a'.repeat(64) },
})

/** Submits for the given time, then waits until all submitted jobs have reached `ended`. Jobs a second. */
async function rateOf(submit: () => Promise<unknown>, ended?: () => number): Promise<number> {
  const start = performance.now()
  const before = ended?.() ?? 0
  let submitted = 0
  const submitter = async () => {
    while (performance.now() - start < seconds * 1000) {
      await submit()
      submitted += 1
    }
  }
  await Promise.all(Array.from({ length: submitters }, submitter))
  const all = before + submitted
  if (ended) while (ended() < all) await delay(1)
  return (submitted / (performance.now() - start)) * 1000
}

async function openStore(dataDir: string): Promise<Store> {
  const store = await openSqliteStore({
    dataDir,
    log: openLog('warn'),
    minFreeBytes: 0,
    ballastBytes: 0,
    onFatal: failure => {
      throw failure
    },
  })
  const id = 'org_bench'
  const limits = { requestsPerMinute: null, jobsPerMinute: null }
  await store.organizations.create({ id, name: 'bench', plan: 'enterprise', ...limits, createdAt: Date.now() })
  return store
}

/** Durable jobs on slots without engines; `ended` counts the results whose commit has been answered. */
function openOurs(store: Store, slotsHeld: number) {
  let ended = 0
  const settle: Store['jobs']['settle'] = async (claim, outcome) => {
    const settled = await store.jobs.settle(claim, outcome)
    ended += 1
    return settled
  }
  const { fleet, models } = slotsOnly({ slots: slotsHeld })
  const jobs = openJobs({
    store: { ...store, jobs: { ...store.jobs, settle } },
    fleet,
    models,
    weightOf: () => 1,
    log: openLog('warn'),
    slots: slotsHeld,
    slotsPerModel: slotsHeld,
    run: runner(async () => done),
  })
  return {
    submit: () => {
      const one = job()
      const { organizationId, tokenId, task } = one
      return jobs.submit({ ...one, admitted: { organizationId, tokenId, task, model, hold: 0 } as Admitted })
    },
    ended: () => ended,
    drain: () => jobs.drain(0),
  }
}

/** Microseconds a claim, `claimsAtOnce` at a time, of a queue of constant length. */
async function timeClaims(store: Store): Promise<number> {
  const line = {
    modelId: 'tiny-chat',
    class: 'async',
    organizationId: 'org_bench',
    from: 0,
    limit: claimsAtOnce,
  } as const
  const start = performance.now()
  const waiting = await store.jobs.waiting(line)
  const claimed = await Promise.all(waiting.map(({ id }) => store.jobs.claim('org_bench', id, Date.now())))
  const elapsed = performance.now() - start
  await Promise.all(claimed.map(one => store.jobs.release(one!, 0)))
  return (elapsed / claimsAtOnce) * 1000
}

const middle = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

async function fill(store: Store, count: number): Promise<Store> {
  for (let left = count; left > 0; left -= 500)
    await Promise.all(
      Array.from({ length: Math.min(500, left) }, (_, at) =>
        store.jobs.submit({ ...job(), rank: count - left + at, idempotency: null }),
      ),
    )
  return store
}

const directory = mkdtempSync(join(tmpdir(), 'infer-bench-'))
await using open = new AsyncDisposableStack()
open.defer(() => rmSync(directory, { recursive: true, force: true }))
const own = (name: string): string => {
  mkdirSync(join(directory, name), { mode: 0o700 })
  return join(directory, name)
}

const bare = openBareWriter(directory)
const [idle, busy] = [await openStore(own('idle')), await openStore(own('busy'))]
const [acknowledging, running] = [openOurs(idle, 0), openOurs(busy, slots)]
const acknowledged = hasRedis ? await openBullmq(own('acknowledged'), slots) : undefined
const worked = hasRedis ? await openBullmq(own('worked'), slots) : undefined
worked?.work()

const results: Record<'floor' | 'acks' | 'theirAcks' | 'ends' | 'theirEnds', number>[] = []
for (let round = 0; round < rounds; round++) {
  const floor = await rateOf(() => bare.submit(job()))
  const acks = await rateOf(acknowledging.submit)
  const theirAcks = acknowledged ? await rateOf(() => acknowledged.submit(randomUUID(), inputs)) : 0
  const ends = await rateOf(running.submit, running.ended)
  const theirEnds = worked ? await rateOf(() => worked.submit(randomUUID(), inputs), worked.completed) : 0
  results.push({ floor, acks, theirAcks, ends, theirEnds })
}
const rate = (of: keyof (typeof results)[number]): number => Math.round(middle(results.map(result => result[of])))
const ratio = middle(results.map(({ acks, floor }) => acks / floor))
for (const each of [acknowledging, running]) await each.drain()
for (const each of [acknowledged, worked]) await each?.close()
for (const store of [idle, busy]) await store.close()
bare.close()

const [short, long] = [await fill(await openStore(own('few')), few), await fill(await openStore(own('many')), many)]
const [ofFew, ofMany]: [number[], number[]] = [[], []]
for (let round = 0; round < claimRounds; round++) {
  ofFew.push(await timeClaims(short))
  ofMany.push(await timeClaims(long))
}
for (const store of [short, long]) await store.close()

const claim = { few: middle(ofFew), many: middle(ofMany) }
process.stdout.write(
  `jobs: ${rate('acks')} durable acks/s at ${submitters} submitters (bare writer ${rate('floor')}, ratio ${ratio.toFixed(2)}` +
    `${hasRedis ? `; BullMQ ${rate('theirAcks')}` : ''}); end to end ${rate('ends')} jobs/s` +
    `${hasRedis ? ` (BullMQ ${rate('theirEnds')})` : ' (BullMQ skipped: there is no redis-server here)'}; ` +
    `a claim at ${few} pending ${claim.few.toFixed(0)} µs, at ${many} ${claim.many.toFixed(0)} µs, ` +
    `${(claim.many / claim.few).toFixed(2)} times\n`,
)
