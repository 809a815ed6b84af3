import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import type { BatchFeed, BatchRecord, NewBatch, NewJob, Store } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { completed, createOrganization, failed, newFile, newJob } from './records.ts'

const hour = 3_600_000
const error = { code: 'model_not_found', message: 'There is none.' }

/** Stores a batch with an input file of its own. */
async function newBatch(store: Store, organizationId: string, more: Partial<NewBatch> = {}): Promise<BatchRecord> {
  const file = await store.files.add(newFile({ organizationId, purpose: 'upload', apiPurpose: 'batch' }))
  const { batch } = await store.batches.create({
    id: newId('batch'),
    organizationId,
    tokenId: 'tok_test',
    endpoint: '/v1/embeddings',
    inputFileId: file.id,
    completionWindow: '24h',
    outputLifetimeMs: null,
    metadata: '{"night":"ly"}',
    region: null,
    origin: 'http://127.0.0.1',
    outputFileId: newId('file'),
    errorFileId: newId('file'),
    createdAt: 1_000,
    expiresAt: 1_000 + 24 * hour,
    idempotency: null,
    ...more,
  })
  return batch
}

/** The next lines of a batch as jobs, one after the other. */
function feedOf(batch: BatchRecord, lines: number[], refused: number[] = []): BatchFeed & { jobs: NewJob[] } {
  const { organizationId, id, fed } = batch
  const jobs = lines.map(line => newJob({ organizationId, class: 'batch', batch: { id, line } }))
  const last = Math.max(...lines, ...refused)
  return {
    organizationId,
    id,
    fed,
    jobs,
    refused: refused.map(line => ({ line, error })),
    nextLine: last + 1,
    nextOffset: last * 10,
    at: 2_000,
  }
}

export function batchRules({ store, fresh }: Subject): void {
  const organization = async (name: string): Promise<string> => (await createOrganization(store, name)).id
  const now = async ({ organizationId, id }: BatchRecord): Promise<BatchRecord> =>
    (await store.batches.find(organizationId, id))!
  async function begun(owner: string, total: number): Promise<BatchRecord> {
    const batch = await newBatch(store, owner)
    expect(await store.batches.begin(batch, { total, modelId: 'tiny' }, 1_500)).toBe(true)
    return now(batch)
  }
  async function end(job: NewJob, how: 'completed' | 'failed' = 'completed', of = store): Promise<void> {
    const claim = (await of.jobs.claim(job.organizationId, job.id, Date.now()))!
    expect(claim.batch).toEqual(job.batch)
    expect(await of.jobs.settle(claim, how === 'completed' ? completed() : failed())).toBe(true)
  }

  test('a batch is read as it was created, listed in both orders, and found by its own organization only', async () => {
    const owner = await organization('org_batches')
    const batches: BatchRecord[] = []
    for (let at = 0; at < 3; at++) batches.push(await newBatch(store, owner))
    expect(batches[0]).toMatchObject({
      status: 'validating',
      total: 0,
      fed: 0,
      nextLine: 1,
      nextOffset: 0,
      faults: null,
    })
    const ids = batches.map(({ id }) => id)
    const list = async (page: Parameters<typeof store.batches.list>[1]) =>
      (await store.batches.list(owner, page)).map(({ id }) => id)
    expect(await list({ limit: 9 })).toEqual(ids.toReversed())
    expect(await list({ limit: 1, after: ids[2]! })).toEqual([ids[1]])
    expect(await list({ limit: 9, after: ids[0]!, oldestFirst: true })).toEqual(ids.slice(1))
    expect(await store.batches.list('org_test', { limit: 9, after: ids[2]! })).toEqual([])
    expect(await store.batches.find('org_test', ids[0]!)).toBeUndefined()
    expect(await store.batches.cancel('org_test', ids[0]!, 5)).toBeUndefined()
  })

  test('the same idempotency key returns the same batch, and a missing input file stores nothing', async () => {
    const owner = await organization('org_batch_keys')
    const idempotency = { key: 'POST /std/v1/batches k', bodyHash: 'a' }
    const first = await newBatch(store, owner, { idempotency })
    expect((await newBatch(store, owner, { idempotency })).id).toBe(first.id)
    await expect(newBatch(store, owner, { inputFileId: newId('file') })).rejects.toMatchObject({ code: 'not_found' })
    expect(await store.batches.list(owner, { limit: 9 })).toHaveLength(1)
  })

  test('an invalid file ends the batch with its faults, once', async () => {
    const batch = await newBatch(store, await organization('org_batch_fails'))
    const faults = [{ code: 'invalid_json_line', message: 'It is not JSON.', param: null, line: 7 }]
    expect(await store.batches.fail(batch, faults, 9)).toBe(true)
    expect(await store.batches.fail(batch, faults, 10)).toBe(false)
    expect(await store.batches.begin(batch, { total: 1, modelId: null }, 10)).toBe(false)
    expect(await now(batch)).toMatchObject({ status: 'failed', faults, finishedAt: 9 })
  })

  test('a batch that cannot go on fails from any state, once, and announces no files', async () => {
    const faults = [{ code: 'internal_error', message: 'It is broken.', param: null, line: null }]
    const batch = await begun(await organization('org_batch_given_up'), 2)
    await store.batches.feed(feedOf(batch, [1], [2]))
    await store.batches.cancel(batch.organizationId, batch.id, 5)
    expect(await store.batches.fail(batch, faults, 9)).toBe(true)
    expect(await store.batches.fail(batch, faults, 10)).toBe(false)
    expect(await now(batch)).toMatchObject({ status: 'failed', faults, finishedAt: 9 })
    const events = await store.events.ofOrganization(batch.organizationId, { sequence: 0, limit: 100 })
    const [failed] = events.filter(({ type }) => type === 'batch.failed')
    expect(JSON.parse(failed!.data!)).toMatchObject({ status: 'failed', output_file_id: null, error_file_id: null })
  })

  test('lines become jobs once, and the end of each is counted in its transaction until the batch is finalizing', async () => {
    const batch = await begun(await organization('org_batch_feeds'), 4)
    const feed = feedOf(batch, [1, 2, 4], [3])
    expect((await store.batches.feed(feed))!.map(({ id }) => id)).toEqual(feed.jobs.map(({ id }) => id))
    expect(await store.batches.feed({ ...feedOf(batch, [1, 2, 3, 4]), fed: 0 })).toBeUndefined()
    const open = await now(batch)
    expect(open).toMatchObject({ fed: 4, failed: 1, completed: 0, nextLine: 5, nextOffset: 40, status: 'in_progress' })
    expect((await store.batches.running(batch)).toSorted()).toEqual(feed.jobs.map(({ id }) => id).toSorted())
    await end(feed.jobs[0]!)
    await end(feed.jobs[1]!, 'failed')
    await expect(store.jobs.remove(batch.organizationId, feed.jobs[0]!.id, 5)).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await store.batches.finish(batch, 5)).toBe(false)
    await store.jobs.cancel(batch.organizationId, feed.jobs[2]!.id, 5)
    expect(await now(batch)).toMatchObject({
      status: 'finalizing',
      ending: 'completed',
      completed: 1,
      failed: 3,
      usage: { inputTokens: 3, outputTokens: 4, cachedTokens: 0, reasoningTokens: 0 },
    })
    expect((await store.batches.lines(batch, 2, 4)).map(({ line, status, error: of }) => [line, status, of])).toEqual([
      [2, 'failed', null],
      [3, 'failed', error],
      [4, 'failed', null],
    ])
    await expect(store.batches.cancel(batch.organizationId, batch.id, 6)).rejects.toMatchObject({
      code: 'batch_not_cancellable',
    })
    expect(await store.batches.finish(batch, 7)).toBe(true)
    expect(await store.batches.finish(batch, 8)).toBe(false)
    expect(await now(batch)).toMatchObject({ status: 'completed', finishedAt: 7 })
    expect(await store.jobs.remove(batch.organizationId, feed.jobs[0]!.id, 9)).toBe(true)
  })

  test('a batch without further lines ends with those that it has', async () => {
    const batch = await begun(await organization('org_batch_rest'), 9)
    const feed = feedOf(batch, [1])
    await store.batches.feed(feed)
    expect(await store.batches.refuseRest(batch, error, 3)).toBe(true)
    expect(await store.batches.refuseRest(batch, error, 3)).toBe(false)
    expect(await store.batches.feed(feedOf(await now(batch), [2]))).toBeUndefined()
    await end(feed.jobs[0]!)
    expect(await now(batch)).toMatchObject({ status: 'finalizing', ending: 'completed', restError: error })
    await store.batches.finish(batch, 4)
    expect(await now(batch)).toMatchObject({ status: 'completed', completed: 1, failed: 8 })
  })

  test('a cancelled or expired batch takes no lines, and ends once its jobs have', async () => {
    const owner = await organization('org_batch_ends')
    const [cancelled, expired] = [await begun(owner, 2), await begun(owner, 2)]
    const feeds = [cancelled, expired].map(batch => feedOf(batch, [1]))
    for (const feed of feeds) await store.batches.feed(feed)
    expect(await store.batches.cancel(owner, cancelled.id, 4)).toMatchObject({ status: 'cancelling', cancellingAt: 4 })
    expect(await store.batches.cancel(owner, cancelled.id, 5)).toMatchObject({ cancellingAt: 4 })
    expect(await store.batches.expire(expired, 4)).toBe(true)
    expect(await store.batches.expire(cancelled, 4)).toBe(false)
    for (const batch of [cancelled, expired]) {
      expect(await store.batches.feed(feedOf(await now(batch), [2]))).toBeUndefined()
      expect(await store.batches.finish(batch, 5)).toBe(false)
    }
    for (const { jobs } of feeds) await end(jobs[0]!)
    for (const batch of [cancelled, expired]) expect(await store.batches.finish(batch, 6)).toBe(true)
    expect(await now(cancelled)).toMatchObject({ status: 'cancelled', completed: 1, failed: 1 })
    expect(await now(expired)).toMatchObject({ status: 'expired', completed: 1, failed: 1 })
  })

  test('the input file is kept until the batch has ended', async () => {
    const owner = await organization('org_batch_file')
    const batch = await newBatch(store, owner)
    await expect(store.files.delete(owner, batch.inputFileId, 5)).rejects.toMatchObject({ code: 'conflict' })
    await store.batches.fail(batch, [], 6)
    expect(await store.files.delete(owner, batch.inputFileId, 7)).toBeDefined()
  })

  test('events of organizations and commits announce the ends and changes of batches', async () => {
    await using own = await fresh()
    const changed: string[] = []
    own.store.onCommitted(({ batches }) => changed.push(...batches.map(({ id }) => id)))
    const owner = (await createOrganization(own.store, 'org_batch_events')).id
    const batch = await newBatch(own.store, owner)
    await own.store.batches.begin(batch, { total: 1, modelId: 'tiny' }, 2)
    const feed = feedOf(batch, [1])
    await own.store.batches.feed(feed)
    await end(feed.jobs[0]!, 'completed', own.store)
    await own.store.batches.finish(batch, 3)
    expect(new Set(changed)).toEqual(new Set([batch.id]))
    const events = await own.store.events.ofOrganization(owner, { sequence: 0, limit: 99 })
    expect(events.at(-1)).toMatchObject({ type: 'batch.completed', at: 3 })
    expect(JSON.parse(events.at(-1)!.data!)).toMatchObject({
      id: batch.id,
      output_file_id: batch.outputFileId,
      error_file_id: null,
      request_counts: { total: 1, completed: 1, failed: 0 },
    })
    expect(await own.store.batches.unfinished()).toEqual([])
    expect(await own.store.batches.sweep(10)).toBe(1)
    expect(await own.store.batches.lines(batch, 1, 9)).toEqual([])
    expect(await own.store.batches.sweep(10)).toBe(0)
  })

  test('webhook endpoints get the end of a batch, and none of the events of its lines', async () => {
    await using own = await fresh()
    const owner = (await createOrganization(own.store, 'org_batch_webhooks')).id
    const endpoint = { id: newId('whe'), organizationId: owner, name: 'n', url: 'https://example.com', enabled: true }
    await own.store.webhooks.create({ ...endpoint, eventTypes: ['*'], origin: null, createdAt: 1 })
    const batch = await newBatch(own.store, owner)
    await own.store.batches.begin(batch, { total: 2, modelId: 'tiny' }, 2)
    const feed = feedOf(batch, [1, 2])
    await own.store.batches.feed(feed)
    await end(feed.jobs[0]!, 'completed', own.store)
    await end(feed.jobs[1]!, 'failed', own.store)
    await own.store.batches.finish(batch, 3)
    expect((await own.store.webhooks.withoutBody(99)).map(({ type }) => type)).toEqual(['batch.completed'])
    const events = await own.store.events.after(owner, { sequence: 0, jobId: feed.jobs[0]!.id, limit: 9 })
    expect(events.map(({ type }) => type)).toEqual(['job.created', 'job.started', 'job.completed'])
  })

  test('jobs of lines expire only after their batch has ended', async () => {
    const batch = await begun(await organization('org_batch_keeps'), 2)
    const feed = feedOf(batch, [1])
    feed.jobs[0]!.retentionMs = 0
    await store.batches.feed(feed)
    await end(feed.jobs[0]!)
    await store.jobs.sweep(Date.now() + 1, 1_000)
    expect(await store.jobs.find(batch.organizationId, feed.jobs[0]!.id)).toMatchObject({ status: 'completed' })
    await store.batches.cancel(batch.organizationId, batch.id, 5)
    await store.batches.finish(batch, 6)
    await store.jobs.sweep(Date.now() + 1, 1_000)
    expect(await store.jobs.find(batch.organizationId, feed.jobs[0]!.id)).toBeUndefined()
  })
}
