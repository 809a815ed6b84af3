import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import type { FinishedJob, UsageQuery, UsageSums } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { newExecution, newWorkflow } from './drawn.ts'
import {
  claimWaiting,
  completed,
  createOrganization,
  failed,
  finishedCall,
  newJob,
  newToken,
  organizationId,
} from './records.ts'

interface Result extends UsageSums {
  model_id: string | null
  token_id: string | null
  user_id: string | null
  workflow_id: string | null
  status: string | null
  task: string | null
  day: string | null
}
interface Bucket {
  start_time: number
  end_time: number
  results: Result[]
}

const from = Date.UTC(2026, 0, 30) / 1000
const to = Date.UTC(2026, 2, 2) / 1000
const query = (change: Partial<UsageQuery> = {}): UsageQuery => ({
  organizationId,
  from: change.width === 'month' ? Date.UTC(2026, 0) / 1000 : from,
  to: change.width === 'month' ? Date.UTC(2026, 3) / 1000 : to,
  width: '1d',
  groupBy: [],
  only: {},
  buckets: 1000,
  results: 1000,
  format: 'json',
  ...change,
})

/** A whole number below `count`, pseudo-random: the same in every run. */
function dice(seed: number) {
  let state = seed
  return (count: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * count)
  }
}

function drawnCalls(count: number): FinishedJob[] {
  const draw = dice(7)
  return Array.from({ length: count }, () => {
    const finishedAt = from * 1000 + draw((to - from) * 1000)
    const startedAt = draw(5) === 0 ? null : finishedAt - draw(5000)
    return finishedCall({
      organizationId: draw(6) === 0 ? 'org_other' : organizationId,
      modelId: `model-${draw(3)}`,
      tokenId: `tok_${draw(3)}`,
      task: draw(2) === 0 ? 'std/chat-completion' : 'std/embeddings',
      status: (['completed', 'completed', 'failed', 'cancelled'] as const)[draw(4)]!,
      usage: {
        inputTokens: draw(1000),
        outputTokens: draw(1000),
        images: draw(3),
        gpuMs: draw(9000),
        energyMj: draw(2) ? draw(9000) : null,
      },
      cost: draw(100_000),
      finishedAt,
      startedAt,
      createdAt: (startedAt ?? finishedAt) - draw(3000),
    })
  })
}

export function usageRules({ fresh }: Subject): void {
  async function opened() {
    const test = await fresh()
    const read = async (change: Partial<UsageQuery> = {}) => {
      const { totals, text, next } = await test.store.usage.read(query(change))
      return { totals, buckets: JSON.parse(text) as Bucket[], next }
    }
    return { ...test, read }
  }
  const sum = (results: readonly Pick<UsageSums, 'cost' | 'input_tokens' | 'requests'>[]) => ({
    requests: results.reduce((all, one) => all + one.requests, 0),
    input_tokens: results.reduce((all, one) => all + one.input_tokens, 0),
    cost: Math.round(results.reduce((all, one) => all + one.cost, 0) * 1e6),
  })

  test('the sums of every width and group are those of the finished work', async () => {
    await using all = await opened()
    await createOrganization(all.store, 'org_other')
    const calls = drawnCalls(400)
    for (let at = 0; at < calls.length; at += 50) await all.store.jobs.record(calls.slice(at, at + 50))
    const own = calls.filter(call => call.organizationId === organizationId)
    const expected = sum(
      own.map(({ usage, cost }) => ({ requests: 1, input_tokens: usage.inputTokens, cost: cost / 1e6 })),
    )
    for (const width of ['month', '1d', '1h'] as const)
      for (const groupBy of [
        [],
        ['model_id'],
        ['token_id', 'user_id'],
        ['model_id', 'token_id'],
        ['status', 'day'],
      ] as const) {
        const { totals, buckets, next } = await all.read({ width, groupBy })
        expect(next).toBeNull()
        expect(sum([totals])).toEqual(expected)
        expect(sum(buckets.flatMap(({ results }) => results))).toEqual(expected)
      }
    const { buckets } = await all.read({
      width: 'month',
      groupBy: ['model_id', 'status'],
      only: { model_id: ['model-1'] },
    })
    const failures = own.filter(
      ({ modelId, status, finishedAt }) =>
        modelId === 'model-1' && status === 'failed' && new Date(finishedAt).getUTCMonth() === 1,
    )
    expect(buckets[1]!.results.find(({ status }) => status === 'failed')).toMatchObject({
      model_id: 'model-1',
      token_id: null,
      requests: failures.length,
      failed: failures.length,
      jobs: 0,
      output_tokens: failures.reduce((tokens, { usage }) => tokens + usage.outputTokens, 0),
      gpu_seconds: failures.reduce((ms, { usage }) => ms + usage.gpuMs!, 0) / 1000,
    })
    // Minutes are read from the ledger itself.
    const day = Date.UTC(2026, 1, 10) / 1000
    const minutes = await all.read({ width: '1m', from: day, to: day + 86_400, groupBy: ['model_id'], buckets: 1440 })
    const hours = await all.read({ width: '1h', from: day, to: day + 86_400 })
    expect(minutes.buckets).toHaveLength(1440)
    expect(sum([minutes.totals])).toEqual(sum([hours.totals]))
    expect(sum(minutes.buckets.flatMap(({ results }) => results))).toEqual(sum([hours.totals]))
    // Any hour may begin and end the time.
    const part = { from: from + 7 * 3600, to: to - 5 * 3600 }
    expect(sum([(await all.read({ width: '1h', ...part })).totals])).toEqual(
      sum((await all.read({ width: '1h', ...part })).buckets.flatMap(({ results }) => results)),
    )
    const tokens = { token_id: ['tok_1'], model_id: ['model-0', 'model-2'] }
    expect(sum([(await all.read({ width: '1h', only: tokens })).totals])).toEqual(
      sum(
        (await all.read({ width: 'month', groupBy: ['model_id'], only: tokens })).buckets.flatMap(
          ({ results }) => results,
        ),
      ),
    )
  })

  test('pages follow each other without a gap, also within a bucket', async () => {
    await using all = await opened()
    await createOrganization(all.store, 'org_other')
    await all.store.jobs.record(drawnCalls(200))
    for (const width of ['month', '1d'] as const) {
      const groupBy = ['model_id', 'token_id', 'status'] as const
      const whole = await all.read({ width, groupBy })
      const results: Result[] = []
      const starts = new Set<number>()
      for (let page: UsageQuery['page'], pages = 0; ; pages++) {
        expect(pages).toBeLessThan(300)
        const next = await all.read({ width, groupBy, buckets: 4, results: 3, page })
        expect(sum([next.totals])).toEqual(sum([whole.totals]))
        results.push(...next.buckets.flatMap(bucket => bucket.results))
        for (const { start_time } of next.buckets) starts.add(start_time)
        if (next.next === null) break
        page = next.next
      }
      expect(results).toEqual(whole.buckets.flatMap(bucket => bucket.results))
      expect([...starts]).toEqual(whole.buckets.map(({ start_time }) => start_time))
    }
  })

  test('work that was rolled back or sent twice is not counted', async () => {
    await using all = await opened()
    const { store } = all
    const call = finishedCall({ finishedAt: from * 1000, cost: 5 })
    const taken = store.organizations.create({ id: organizationId, name: 'taken', plan: 'pro', createdAt: 1 })
    const done = await Promise.allSettled([
      store.jobs.record([call]),
      taken,
      store.jobs.record([call, finishedCall({ finishedAt: from * 1000, cost: 7 })]),
    ])
    expect(done.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await all.read()).totals).toMatchObject({ requests: 2, cost: 12 / 1e6 })
    expect([...store.stats().used]).toMatchObject([[call.modelId, { requests: 2, cost: 12 / 1e6 }]])
  })

  test('jobs count by their end, with their workflow and the user of their token', async () => {
    await using all = await opened()
    const { store } = all
    const at = Date.now()
    const workflow = await store.workflows.create(newWorkflow())
    const execution = newExecution({ nodes: { a: [] } }, { workflowId: workflow.id, workflowVersion: 1 })
    await store.executions.create(execution)
    const [first] = await claimWaiting(store, { modelId: execution.modelId })
    await store.jobs.settle(first!, completed(at))
    const jobs = [newJob({ modelId: 'm' }), newJob({ modelId: 'm' })]
    for (const job of jobs) await store.jobs.submit(job)
    const [claimed] = await claimWaiting(store, { modelId: 'm', limit: 1 })
    await store.jobs.settle(claimed!, failed())
    const now = { from: Math.floor(at / 3_600_000) * 3600, to: Math.floor(at / 3_600_000) * 3600 + 7200 }
    for (const width of ['1h', '1m'] as const) {
      const { buckets, totals } = await all.read({ ...now, width, groupBy: ['workflow_id', 'user_id'] })
      expect(totals).toMatchObject({ requests: 0, jobs: 2, failed: 1 })
      const results = buckets.flatMap(bucket => bucket.results)
      expect(results.map(({ workflow_id, jobs: count }) => [workflow_id, count])).toEqual([
        [null, 1],
        [workflow.id, 1],
      ])
    }
    await store.jobs.remove(organizationId, claimed!.id, at)
    expect((await all.read({ ...now, width: '1h' })).totals).toMatchObject({ jobs: 2 })
  })

  test('an engine that reports nonsense neither stops the writer nor breaks the sums', async () => {
    await using all = await opened()
    const usage = { inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: 1 }
    const calls = Array.from({ length: 3 }, () => finishedCall({ finishedAt: from * 1000, usage, cost: 0 }))
    for (const call of calls) await all.store.jobs.record([call])
    expect((await all.read()).totals).toMatchObject({
      requests: 3,
      input_tokens: Number.MAX_SAFE_INTEGER,
      output_tokens: 3,
    })
  })

  test('a job that ends beyond the calendar fails alone: the store serves what is sent beside it', async () => {
    await using all = await opened()
    const { store } = all
    const beyond = 9e15
    const [first, last] = [newJob(), newJob()]
    for (const job of [first, last]) await store.jobs.submit(job)
    const claims = await claimWaiting(store)
    const claimOf = ({ id }: { id: string }) => claims.find(claim => claim.id === id)!
    const ended = await Promise.allSettled([
      store.jobs.settle(claimOf(first), completed(beyond)),
      store.jobs.record([finishedCall({ finishedAt: beyond })]),
      store.jobs.settle(claimOf(last), completed(from * 1000)),
    ])
    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
    expect(await store.jobs.giveUp(organizationId, first.id, from * 1000)).toBe(true)
    await store.jobs.record([finishedCall({ finishedAt: from * 1000 })])
    expect((await all.read()).totals).toMatchObject({ requests: 1, jobs: 2, failed: 1 })
    expect(await store.jobs.counts()).toMatchObject({ completed: 1, failed: 1, processing: 0 })
  })

  test('a CSV row has the times of its bucket, its groups and its sums', async () => {
    await using all = await opened()
    await all.store.jobs.record([
      finishedCall({
        id: newId('job'),
        finishedAt: from * 1000,
        modelId: '=a,"b"',
        cost: 1_500_000,
        startedAt: null,
        createdAt: from * 1000,
      }),
    ])
    const { text } = await all.store.usage.read(query({ groupBy: ['model_id', 'day'], format: 'csv' }))
    expect(text).toBe(
      `2026-01-30T00:00:00Z,2026-01-31T00:00:00Z,"'=a,""b""",2026-01-30,1,0,0,10,0,5,0,0,0,0,0,0,0,0,1.5,0,0\r\n`,
    )
  })

  test('work of a token counts for the user who owned it then', async () => {
    await using all = await opened()
    const { store } = all
    const token = await store.tokens.create(newToken())
    await store.jobs.record([finishedCall({ tokenId: token.id, finishedAt: from * 1000 })])
    const { buckets } = await all.read({ groupBy: ['user_id', 'token_id'] })
    expect(buckets[0]!.results).toMatchObject([{ user_id: null, token_id: token.id, requests: 1 }])
  })
}
