import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Dag, WorkflowNode } from '../../core/dag/definition.ts'
import { itemStatuses } from '../../core/dag/execution-state.ts'
import { newId } from '../../core/ids.ts'
import { openJobs } from '../../core/jobs/jobs.ts'
import { openLog } from '../../core/log.ts'
import { openSqliteStore } from '../../core/store/sqlite/store.ts'
import { waitingOf } from '../../core/store/store.ts'
import { openDefinitionSnapshots } from '../../core/workflows/definition-snapshots.ts'
import { openExecutions } from '../../core/workflows/executions.ts'
import { openNodeRunner, openNodeWorks } from '../../core/workflows/node-run.ts'
import { offerOf } from '../../core/workflows/offer.ts'
import { openSingleFlight } from '../../core/workflows/single-flight.ts'
import { admitsAll, requester } from '../core/_admission.ts'
import { slotsOnly } from '../core/jobs/_fleet.ts'
import { done, runner } from '../core/jobs/_runs.ts'
import { newJob } from '../store/conformance/records.ts'
import { type Flow, hasRedis, openBullmq } from './bullmq.ts'

/**
 * Measures workflows whose nodes cost nothing: a fan of 1,000 nodes (one, 998 concurrent ones that refer to it, one that
 * waits for all) and a chain of 100 nodes. Prints milliseconds per node from the call to the end, the share in which the
 * main thread was busy, and the time of one commit with its fsync. Compares with the closest that BullMQ's FlowProducer
 * offers, on Redis with `appendfsync always`: a job with 999 children, and 100 jobs each the child of the next; the ratio of
 * the times is below 1 where infer is faster. Prints one line. A second line is about a node with a list of 10,000 items that
 * take 1 ms: milliseconds per item, and as jobs in the bare queue; the growth of memory, the longest time in which the
 * status of the execution was read, and the time in which items of one status are found, at best.
 */
const rounds = Number(process.argv[2] ?? 3)
const [fanNodes, chainNodes, slots, itemCount] = [1_000, 100, 64, 10_000]
const bareInputs = JSON.stringify({ messages: [{ role: 'user', content: 'x' }] })
const organizationId = 'org_bench'
const limits = { requestsPerMinute: null, jobsPerMinute: null }

// Node by node: the fan has more of them than a definition may have that comes over the network.
const node = (before?: string) =>
  WorkflowNode.parse({
    model_id: 'none',
    task: 'std/chat-completion',
    inputs: {
      messages: [{ role: 'user', content: before ? `\${nodes.${before}.result.choices[0].message.content}` : 'x' }],
    },
  })
const names = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`)
const middleOf = (fan: readonly string[]) => fan.slice(1, -1)
const shapes = {
  fan: ((): Dag => {
    const fan = names(fanNodes)
    const last = fan.at(-1)!
    return {
      nodes: Object.fromEntries(fan.map((name, at) => [name, node(at === 0 || name === last ? undefined : 'n0')])),
      edges: middleOf(fan).flatMap(name => [
        { from: 'n0', to: name },
        { from: name, to: last },
      ]),
    }
  })(),
  chain: ((): Dag => {
    const chain = names(chainNodes)
    return {
      nodes: Object.fromEntries(chain.map((name, at) => [name, node(chain[at - 1])])),
      edges: chain.slice(1).map((to, at) => ({ from: chain[at]!, to })),
    }
  })(),
}
const fanFlow: Flow[] = Array.from({ length: fanNodes - 1 }, () => ({ children: [] }))
let chainFlow: Flow[] = []
for (let at = 1; at < chainNodes; at++) chainFlow = [{ children: chainFlow }]

const directory = mkdtempSync(join(tmpdir(), 'infer-bench-'))
await using open = new AsyncDisposableStack()
open.defer(() => rmSync(directory, { recursive: true, force: true }))
const own = (name: string): string => {
  mkdirSync(join(directory, name), { mode: 0o700 })
  return join(directory, name)
}

const log = openLog('warn')
const store = await openSqliteStore({
  dataDir: own('ours'),
  log,
  minFreeBytes: 0,
  ballastBytes: 0,
  onFatal: failure => {
    throw failure
  },
})
await store.organizations.create({ id: organizationId, name: 'bench', plan: 'enterprise', ...limits, createdAt: 1 })
const { fleet, models } = slotsOnly({ slots })
const snapshots = openDefinitionSnapshots(store.executions)
const admission = admitsAll(models)
const noLarge = () => Promise.reject(new Error('There are no large results here'))
const works = openNodeWorks({
  snapshots,
  admission,
  cpu: { referred: noLarge, listed: noLarge },
  content: inputs => Promise.resolve({ inputs, foreign: false }),
})
const none = () => Promise.reject(new Error('No node runs a workflow here'))
const flight = openSingleFlight(store.executions)
/** How long a task takes, milliseconds. */
let taskMs = 0
const run = openNodeRunner({
  admission,
  works,
  flight,
  store: store.executions,
  runWorkflow: none,
  snapshots,
  media: { take: () => Promise.reject(new Error('There are no media here')) },
  run: runner(async () => {
    if (taskMs > 0) await delay(taskMs)
    return { ...done, result: '{"choices":[{"message":{"content":"done"}}]}' }
  }),
})
const jobs = openJobs({ store, fleet, models, weightOf: () => 1, log, slots, slotsPerModel: slots, run })
const nesting = { requesterOf: none, offerFor: () => offer, cpu: { pruned: none } }
const executions = openExecutions({
  store,
  jobs,
  admission,
  snapshots,
  works,
  flight,
  nesting,
  fleet: { upcoming() {} },
  log,
})
const offered = { all: () => [], find: () => undefined, catalog: () => new Map() }
const offer = {
  ...offerOf(offered, () => true),
  model: (id: string) => ({
    id,
    enabled: true,
    tasks: ['std/chat-completion'],
    extraParams: [],
    resolutions: undefined,
    generationDefaults: undefined,
    voices: undefined,
    voiceAliases: {},
  }),
}

async function ours(dag: Dag, inputParams: Record<string, unknown> = {}): Promise<{ ms: number; busy: number }> {
  const facts = {
    name: 'bench',
    description: null,
    tags: [],
    region: 'Global' as const,
    timeout: 600,
    parameters: null,
  }
  const before = performance.eventLoopUtilization()
  const start = performance.now()
  const { execution } = await executions.execute({
    requester: requester(organizationId),
    workflow: null,
    definition: { ...facts, onFailure: 'fail_fast', dag },
    inputParams,
    priority: 0,
    timeout: undefined,
    retentionMs: null,
    metadata: null,
    idempotency: null,
    origin: '',
    offer,
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = executions.follow(execution.id, ended => ended && resolve())
  if ((await store.executions.summary(organizationId, execution.id))!.finishedAt !== null) resolve()
  await promise
  stop()
  const count = Object.keys(dag.nodes).length
  const ended = await store.executions.summary(organizationId, execution.id)
  if (ended!.progress.completed !== count) throw new Error(`Only ${ended!.progress.completed} of ${count} completed`)
  const { active } = performance.eventLoopUtilization(before)
  return { ms: (performance.now() - start) / count, busy: active / count }
}

const bullmq = hasRedis ? await openBullmq(own('redis'), slots) : undefined
bullmq?.work()
async function theirs(flow: Flow[], count: number): Promise<number> {
  const all = bullmq!.completed() + count
  const start = performance.now()
  await bullmq!.flow(flow)
  while (bullmq!.completed() < all) await delay(1)
  return (performance.now() - start) / count
}

/** Milliseconds of a commit that nothing else shares. */
async function commit(): Promise<number> {
  const start = performance.now()
  await store.idempotency.keep(newId('req'), {
    bodyHash: 'x',
    status: 200,
    body: '{}',
    jobId: null,
    createdAt: Date.now(),
  })
  return performance.now() - start
}

const middle = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
await ours(shapes.chain)
const found: Record<'fan' | 'fanBusy' | 'chain' | 'chainBusy' | 'commit' | 'theirFan' | 'theirChain', number[]> = {
  fan: [],
  fanBusy: [],
  chain: [],
  chainBusy: [],
  commit: [],
  theirFan: [],
  theirChain: [],
}
for (let round = 0; round < rounds; round++) {
  const fan = await ours(shapes.fan)
  found.fan.push(fan.ms)
  found.fanBusy.push(fan.busy)
  if (bullmq) found.theirFan.push(await theirs(fanFlow, fanNodes))
  const chain = await ours(shapes.chain)
  found.chain.push(chain.ms)
  found.chainBusy.push(chain.busy)
  if (bullmq) found.theirChain.push(await theirs(chainFlow, chainNodes))
  for (let time = 0; time < 50; time++) found.commit.push(await commit())
}
const items = await measureItems()
await executions.close()
await jobs.drain(0)
await bullmq?.close()
await store.close()

async function measureItems() {
  taskMs = 1
  const each = { ...node(), for_each: '${input.list}', max_items: itemCount }
  const inputParams = { list: Array.from({ length: itemCount }, (_, at) => `item ${at}`) }
  const rssMb = () => process.memoryUsage.rss() / (1 << 20)
  const before = rssMb()
  let [mostMb, statusMs] = [before, 0]
  const look = async () => {
    mostMb = Math.max(mostMb, rssMb())
    const start = performance.now()
    const [execution] = (await store.executions.list(organizationId, { limit: 1 })).executions
    await store.executions.nodes(organizationId, execution!.id)
    statusMs = Math.max(statusMs, performance.now() - start)
  }
  const watch = setInterval(() => void look(), 100)
  const { ms: perNode, busy } = await ours({ nodes: { each }, edges: [] }, inputParams)
  clearInterval(watch)
  const [ended] = (await store.executions.list(organizationId, { limit: 1 })).executions
  let filterMs = 0
  for (const status of itemStatuses) {
    let best = Infinity
    for (let time = 0; time < 5; time++) {
      const start = performance.now()
      await store.executions.items(organizationId, ended!.id, { nodeId: 'each', after: -1, limit: 101, status })
      best = Math.min(best, performance.now() - start)
    }
    filterMs = Math.max(filterMs, best)
  }
  return {
    filterMs,
    ms: perNode / itemCount,
    busy: busy / itemCount,
    bareMs: (await bareQueue()) / itemCount,
    growthMb: mostMb - before,
    statusMs,
  }
}

/** Milliseconds until as many jobs of the same task have ended that are submitted by themselves, a thousand at once. */
async function bareQueue(): Promise<number> {
  const start = performance.now()
  const { completed: before } = await store.jobs.counts()
  for (let at = 0; at < itemCount; at += 1_000) {
    const batch = Array.from({ length: 1_000 }, () => newJob({ organizationId, modelId: 'none', inputs: bareInputs }))
    jobs.queued((await store.jobs.submitAll(batch)).map(({ job }) => waitingOf(job)))
  }
  while ((await store.jobs.counts()).completed < before + itemCount) await delay(5)
  return performance.now() - start
}

const ms = (of: keyof typeof found): string => middle(found[of]).toFixed(2)
/** Those of BullMQ, with the ratio of the times that were measured one after another. */
const beside = (own: 'fan' | 'chain', theirs: 'theirFan' | 'theirChain'): string => {
  if (!bullmq) return ' (BullMQ skipped: there is no redis-server here)'
  const ratio = middle(found[own].map((time, round) => time / found[theirs][round]!))
  return ` (BullMQ ${ms(theirs)}, ratio ${ratio.toFixed(2)})`
}
const bound = 3 * middle(found.commit) + 1
process.stdout.write(
  `workflow: fan of ${fanNodes}: ${ms('fan')} ms a node, ${ms('fanBusy')} of them busy` +
    `${beside('fan', 'theirFan')}; chain of ${chainNodes}: ${ms('chain')} ms a node, ` +
    `${ms('chainBusy')} busy${beside('chain', 'theirChain')}; ` +
    `a commit ${ms('commit')} ms, so the bound is ${bound.toFixed(2)} ms; load ${loadavg()[0]!.toFixed(1)}\n`,
)
process.stdout.write(
  `workflow: ${itemCount} items of ${taskMs} ms on ${slots} slots: ${items.ms.toFixed(3)} ms an item, ${items.busy.toFixed(3)} of them busy; ` +
    `in the bare queue ${items.bareMs.toFixed(3)} ms, so ${(items.ms - items.bareMs).toFixed(3)} ms more; ` +
    `memory +${items.growthMb.toFixed(0)} MiB; status in ${items.statusMs.toFixed(1)} ms, items of one status in ${items.filterMs.toFixed(1)} ms at most\n`,
)
