import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ulid } from '../../../../core/ids.ts'
import { promptIn } from '../../../../core/store/job-prompt.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { jobListReads } from '../../../../core/store/sqlite/job-list.ts'
import { libraryReads } from '../../../../core/store/sqlite/library.ts'
import { type JobFilter, type JobRecord, jobStatuses, type NewLibraryItem } from '../../../../core/store/store.ts'
import {
  completed,
  createOrganization,
  finishedCall,
  newJob,
  newVideo,
  openTestStore,
  organizationId,
  type TestStore,
} from '../_store.ts'

// Every list is compared with the simplest one: all rows in memory, filtered, sorted, cut.
const start = 1_700_000_000_000
const models = ['a', 'b', 'c']
const tasks = ['std/chat-completion', 'std/embeddings'] as const
const odd = ['', 'x', '"', '\\', "'", 'é', '$.x', '😀', 'a":"b']
const inputs = [
  { prompt: 'A red Boat' },
  {
    messages: [
      { role: 'user', content: 'red' },
      { role: 'assistant', content: 'boat' },
      { role: 'user', content: 'GRÜN' },
    ],
  },
  { input: 'boat', text: 'red' },
  { n: 1 },
].map(one => JSON.stringify(one))
const all: JobRecord[] = []
const videos: NewLibraryItem[] = []
let opened: TestStore

/** A reproducible generator of whole numbers below `below`. */
let state = 20_260_401
const below = (limit: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return Math.floor((state / 2 ** 32) * limit)
}
const oneOf = <Item>(items: readonly Item[]): Item => items[below(items.length)]!

async function addJob(createdAt: number): Promise<void> {
  const { store } = opened
  const metadata = below(3) === 0 ? { [oneOf(odd)]: oneOf(odd), [oneOf(odd)]: oneOf(odd) } : null
  const id = `job_${ulid(createdAt)}`
  const { job } = await store.jobs.submit(
    newJob({
      id,
      createdAt,
      modelId: oneOf(models),
      task: oneOf(tasks),
      metadata: metadata && JSON.stringify(metadata),
      inputs: oneOf(inputs),
    }),
  )
  const status = oneOf(jobStatuses)
  if (status === 'cancelled') await store.jobs.cancel(organizationId, id, createdAt + 1)
  else if (status !== 'pending') {
    const claim = (await store.jobs.claim(organizationId, job.id, createdAt + 1))!
    const error = { code: 'timeout' as const, message: 'No.', type: 'timeout_error', retryable: true, attempt: 1 }
    const failure = { status, error, retryAt: null, engineId: null, at: createdAt + 2, logs: null }
    if (status === 'completed') await store.jobs.settle(claim, completed(createdAt + 2))
    if (failure.status === 'failed') await store.jobs.settle(claim, { ...failure, status: 'failed' })
  }
  all.push((await store.jobs.find(organizationId, id))!)
}

beforeAll(async () => {
  opened = await openTestStore()
  const { store } = opened
  const foreign = (await createOrganization(store, 'org_foreign')).id
  for (let i = 0; i < 150; i++) {
    // Some in the same millisecond, and days between others.
    const createdAt = start + below(4) * 86_400_000 + below(20)
    if (below(5) < 3) await addJob(createdAt)
    else {
      const status = oneOf(['completed', 'failed', 'cancelled'] as const)
      const facts = { id: `job_${ulid(createdAt)}`, createdAt, modelId: oneOf(models), task: oneOf(tasks), status }
      await store.jobs.record([finishedCall(facts)])
      all.push((await store.jobs.find(organizationId, facts.id))!)
    }
    if (i % 10 === 0) await store.jobs.submit(newJob({ organizationId: foreign, createdAt }))
    if (i % 10 === 0) await store.jobs.record([finishedCall({ organizationId: foreign, createdAt })])
  }
  const { job } = await store.jobs.submit(newJob())
  const made = Array.from({ length: 40 }, () =>
    newVideo({
      jobId: job.id,
      prompt: `${oneOf(['Red', 'BLUE', 'grün'])} ${oneOf(['Fox', 'cat'])}`,
      modelId: oneOf(models),
      createdAt: start + below(20),
    }),
  )
  videos.push(...made.flatMap(({ library }) => library))
  const claim = (await store.jobs.claim(organizationId, job.id, start))!
  const files = made.flatMap(({ files }) => files)
  await store.jobs.settle(claim, { ...completed(start), files, library: videos })
  all.push((await store.jobs.find(organizationId, job.id))!)
  all.sort((a, b) => (a.id < b.id ? 1 : -1))
  videos.sort((a, b) => (a.id < b.id ? 1 : -1))
})
afterAll(() => opened[Symbol.asyncDispose]())

const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 3 })
const moment = fc.oneof(
  fc.integer({ min: start - 1, max: start + 30 }),
  fc.integer({ min: start - 86_400_000, max: start + 5 * 86_400_000 }),
)
const filters = fc.record({
  limit: fc.integer({ min: 1, max: 40 }),
  status: maybe(fc.constantFrom(...jobStatuses)),
  task: maybe(fc.constantFrom(...tasks)),
  modelId: maybe(fc.constantFrom(...models, 'none')),
  kind: maybe(fc.constantFrom('async' as const, 'sync' as const)),
  createdAfter: maybe(moment),
  createdBefore: maybe(moment),
  search: maybe(fc.constantFrom('red', 'BOAT red', 'grün', 'none', ' ')),
  metadata: maybe(fc.dictionary(fc.constantFrom(...odd), fc.constantFrom(...odd), { maxKeys: 2 })),
})

const matchesSearch = (search: string | undefined, { inputs }: JobRecord): boolean => {
  const words = (search ?? '').toLowerCase().split(' ').filter(Boolean)
  return (
    words.length === 0 || (inputs !== 'null' && words.every(word => promptIn(inputs)?.toLowerCase().includes(word)))
  )
}

const wanted = (filter: JobFilter) => (job: JobRecord) =>
  matchesSearch(filter.search, job) &&
  (filter.status === undefined || job.status === filter.status) &&
  (filter.task === undefined || job.task === filter.task) &&
  (filter.modelId === undefined || job.modelId === filter.modelId) &&
  (filter.kind === undefined || job.kind === filter.kind) &&
  (filter.createdAfter === undefined || job.createdAt > filter.createdAfter) &&
  (filter.createdBefore === undefined || job.createdAt < filter.createdBefore) &&
  Object.entries(filter.metadata ?? {}).every(
    ([name, value]) => (JSON.parse(job.metadata ?? '{}') as Record<string, unknown>)[name] === value,
  )

/** Every page to the end. Each is at most as long as requested, and there is an end. */
function turned<Row>(turn: (after: string | undefined) => { rows: Row[]; next: string | null }, limit: number): Row[] {
  const found: Row[] = []
  let after: string | undefined
  for (let pages = 0; pages < 1000; pages++) {
    const { rows, next } = turn(after)
    expect(rows.length).toBeLessThanOrEqual(limit)
    found.push(...rows)
    if (next === null) return found
    after = next
  }
  throw new Error('The pages do not end')
}

test.each([
  ['in one look', { rows: 2000, withMetadata: 500, characters: 1_000_000 }],
  ['a few rows at a time', { rows: 7, withMetadata: 3, characters: 100 }],
  ['one row at a time', { rows: 1, withMetadata: 1, characters: 1 }],
])('pages of jobs, %s, equal a filter over all jobs', (_, scan) => {
  const connection = openDatabase(join(opened.dataDir, 'infer.db'), { readonly: true })
  const { 'jobs.list': list } = jobListReads(connection, scan)
  fc.assert(
    fc.property(filters, filter => {
      const found = turned(after => {
        const { jobs, next } = list(organizationId, {
          ...filter,
          ...(after === undefined ? {} : { after }),
        })
        return { rows: jobs, next }
      }, filter.limit)
      const expected = all.filter(wanted(filter as JobFilter)).map(job => ({ ...job, inputs: 'null', result: null }))
      expect(found).toEqual(expected)
    }),
    { numRuns: 300, seed: 20_260_401 },
  )
  connection.close()
})

test('a page that is not full is the last if nothing was filtered out', async () => {
  const { jobs, next } = await opened.store.jobs.list(organizationId, { limit: 1000 })
  expect([jobs.length, next]).toEqual([all.length, null])
  const first = await opened.store.jobs.list(organizationId, { limit: all.length })
  expect(first.next).toBeNull()
  expect(await opened.store.jobs.list('org_absent', { limit: 5 })).toEqual({ jobs: [], next: null })
})

test.each([2000, 7, 1])('pages of the library, %d entries per query, equal a filter over all entries', scan => {
  const connection = openDatabase(join(opened.dataDir, 'infer.db'), { readonly: true })
  const library = libraryReads(connection, scan)
  const search = maybe(fc.constantFrom('red', 'FOX', 'GRÜN c', 'blue cat', 'none', ' '))
  const query = fc.record({
    limit: fc.integer({ min: 1, max: 40 }),
    search,
    modelId: maybe(fc.constantFrom(...models)),
    createdAfter: maybe(moment),
    createdBefore: maybe(moment),
  })
  fc.assert(
    fc.property(query, ({ limit, search, modelId, createdAfter, createdBefore }) => {
      const filter = Object.fromEntries(
        Object.entries({ limit, search, modelId, createdAfter, createdBefore }).filter(
          ([, value]) => value !== undefined,
        ),
      ) as { limit: number }
      const found = turned(after => {
        const { items, next } = library['library.list'](organizationId, {
          ...filter,
          ...(after === undefined ? {} : { after }),
        })
        return { rows: items, next }
      }, limit)
      const expected = videos.filter(
        video =>
          (search ?? '')
            .toLowerCase()
            .split(' ')
            .every(word => video.prompt.toLowerCase().includes(word)) &&
          (modelId === undefined || video.modelId === modelId) &&
          (createdAfter === undefined || video.createdAt > createdAfter) &&
          (createdBefore === undefined || video.createdAt < createdBefore),
      )
      expect(found.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
    }),
    { numRuns: 200, seed: 20_260_401 },
  )
  connection.close()
})
