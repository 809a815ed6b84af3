/**
 * How long usage of a year of 10 million requests takes: `node test/bench/usage.ts [millions]`. Writes the year through
 * the code that sums each request: 20 models with 1 or 2 tasks, 20 tokens of 8 users, 3 states, few at night. Each
 * figure is the median of 15 reads through the reading thread, as the route waits for it. The baseline sums the same
 * year from the hourly rows, in the same run.
 */
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import type { Task } from '../../core/schemas/task.ts'
import { callRows } from '../../core/store/ledger-rows.ts'
import { openDatabase } from '../../core/store/sqlite/database.ts'
import { openLedger } from '../../core/store/sqlite/ledger.ts'
import { openUsageTotals } from '../../core/store/sqlite/usage-totals.ts'
import type { UsageQuery } from '../../core/store/store.ts'
import { finishedCall, openTestStore, organizationId } from '../core/store/_store.ts'

const millions = Number(process.argv[2] ?? 10)
const day = 86_400
const from = Date.UTC(2025, 0, 1) / 1000
const to = Date.UTC(2026, 0, 1) / 1000
const tasks: Task[] = ['std/chat-completion', 'std/embeddings', 'std/rerank', 'slug/text-to-image']

/** Pseudo-random numbers from 0 to 1, the same in every run. */
let state = 42
const random = () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648
/** Few of many are used often. */
const skewed = (count: number) => Math.floor(random() ** 2 * count)

await using opened = await openTestStore()
const connection = openDatabase(join(opened.dataDir, 'infer.db'))
const users = connection.prepare('INSERT INTO users VALUES (?, ?, ?, ?, ?, 1, 1, NULL)')
for (let user = 0; user < 8; user++) users.run(organizationId, `user_${user}`, `user ${user}`, `${user}@a.b`, 'member')
const totals = openUsageTotals(connection)
const hours = (to - from) / 3600
const perHour = (millions * 1e6) / hours
let sequence = 0
const began = performance.now()
let summing = 0
for (let hour = 0; hour < hours; hour += 24) {
  connection.exec('BEGIN')
  const at = performance.now()
  for (let offset = 0; offset < 24; offset++) {
    const share = 1 + 0.8 * Math.sin(((offset - 8) / 24) * 2 * Math.PI)
    for (let request = 0; request < perHour * share; request++) {
      const model = skewed(20)
      const token = skewed(20)
      const luck = random()
      const finishedAt = (from + (hour + offset) * 3600) * 1000 + Math.floor(random() * 3_600_000)
      totals.add(
        callRows([
          finishedCall({
            id: '',
            modelId: `model-${model}`,
            tokenId: `tok_${token}`,
            task: tasks[model % 3 === 0 && random() < 0.2 ? 3 : model % 3]!,
            status: luck < 0.95 ? 'completed' : luck < 0.99 ? 'failed' : 'cancelled',
            usage: { inputTokens: 300 + model, outputTokens: 200 + token, gpuMs: 800 },
            finishedAt,
            createdAt: finishedAt - 900,
            startedAt: finishedAt - 800,
          }),
        ]),
        { userId: `user_${token % 8}`, workflowId: null },
        ++sequence,
      )
    }
  }
  totals.write()
  summing += performance.now() - at
  connection.exec('COMMIT')
  await turn()
}
const count = (table: string) => connection.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number
const size = (connection.pragma('page_count', { simple: true }) as number) * 4096
console.log(
  `year: ${sequence} requests, ${count('usage_hours')} hourly and ${count('usage_days')} daily rows, ${Math.round(size / 2 ** 20)} MB, written in ${((performance.now() - began) / 1000).toFixed(0)} s, ${((summing / sequence) * 1000).toFixed(1)} µs a request`,
)
// The last day also in the ledger, for usage by minute.
const ledger = openLedger(connection)
connection.exec('BEGIN')
for (let request = 0; request < (millions * 1e6) / 365; request++) {
  const finishedAt = to * 1000 - 1 - Math.floor(random() * day * 1000)
  ledger.appendCalls(
    callRows([finishedCall({ finishedAt, modelId: `model-${skewed(20)}`, tokenId: `tok_${skewed(20)}` })]),
  )
}
connection.exec('DELETE FROM ledger_hours')
connection.exec(
  'INSERT INTO ledger_hours SELECT finished_at / 3600000 * 3600, min(sequence), max(sequence) FROM ledger GROUP BY 1',
)
connection.exec('COMMIT')

const base: UsageQuery = {
  organizationId,
  from,
  to,
  width: 'month',
  groupBy: [],
  only: {},
  buckets: 400,
  results: 5000,
  format: 'json',
}
const queries: [string, Partial<UsageQuery>][] = [
  ['year by month', {}],
  ['year by month and model', { groupBy: ['model_id'] }],
  ['year by month and token', { groupBy: ['token_id'] }],
  ['year by month and user', { groupBy: ['user_id'] }],
  ['year by month, model and token', { groupBy: ['model_id', 'token_id'] }],
  ['year by day', { width: '1d' }],
  ['year by day and model', { width: '1d', groupBy: ['model_id'], buckets: 366, results: 10_000 }],
  ['year by day and token', { width: '1d', groupBy: ['token_id'], buckets: 366, results: 10_000 }],
  ['year of one model by token', { width: 'month', groupBy: ['token_id'], only: { model_id: ['model-3'] } }],
  ['month by day and model', { width: '1d', from: to - 31 * day, groupBy: ['model_id'] }],
  ['week by hour and model', { width: '1h', from: to - 7 * day, groupBy: ['model_id'] }],
  ['day by minute and model', { width: '1m', from: to - day, groupBy: ['model_id'], buckets: 1440 }],
]
const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const cold = performance.now()
await opened.store.usage.read(base)
console.log(`first read, with the start of the thread: ${(performance.now() - cold).toFixed(0)} ms`)
for (const [name, change] of queries) {
  const times: number[] = []
  let bytes = 0
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  for (let round = 0; round < 15; round++) {
    const at = performance.now()
    bytes = (await opened.store.usage.read({ ...base, ...change })).text.length
    times.push(performance.now() - at)
  }
  delay.disable()
  console.log(
    `${name}: ${median(times).toFixed(0)} ms (most ${Math.max(...times).toFixed(0)}), ${bytes} characters, event loop late by at most ${(delay.max / 1e6 - 1).toFixed(1)} ms`,
  )
}
const baseline: number[] = []
for (let round = 0; round < 3; round++) {
  const at = performance.now()
  connection
    .prepare(
      'SELECT key, total(cost), total(input_tokens) FROM usage_hours WHERE start >= ? AND start < ? GROUP BY key',
    )
    .all(from, to)
  baseline.push(performance.now() - at)
}
console.log(`baseline, the year from hourly rows, two sums: ${median(baseline).toFixed(0)} ms`)
connection.close()
