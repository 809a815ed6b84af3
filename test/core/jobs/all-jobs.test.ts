import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type JobPage, listTogether, mergedPage } from '../../../core/jobs/all-jobs.ts'

const page = (ids: string, next: string | null = null): JobPage => ({
  jobs: ids.split('').map(id => ({ id })) as JobPage['jobs'],
  next,
})

test.each([
  ['nothing of no organizations', [], 3, '', null],
  ['all, newest first', [page('da'), page('cb')], 9, 'dcba', null],
  ['as many as fit', [page('da'), page('cb')], 3, 'dcb', 'b'],
  ['exactly as many as fit', [page('da'), page('cb')], 4, 'dcba', null],
  ['nothing older than the end of a full page', [page('fe', 'e'), page('gd')], 4, 'gfe', 'e'],
  ['nothing older than where a search stopped', [page('', 'c'), page('da')], 9, 'd', 'c'],
  ['up to the newest of two ends', [page('f', 'b'), page('g', 'd')], 9, 'gf', 'd'],
])('a merged page has %s', (_, pages, limit, ids, next) => {
  const merged = mergedPage(pages, limit)
  expect([merged.jobs.map(({ id }) => id).join(''), merged.next]).toEqual([ids, next])
})

test('of hundreds of organizations a few are read at once, and the page is that of all', async () => {
  const names = Array.from({ length: 300 }, (_, at) => String(at).padStart(3, '0'))
  let reading = 0
  let most = 0
  const list = async (organization: string): Promise<JobPage> => {
    most = Math.max(most, ++reading)
    await setImmediate()
    reading--
    const jobs = ['b', 'a'].map(kind => ({ id: `${kind}${organization}` }))
    return { jobs: jobs as JobPage['jobs'], next: null }
  }
  const first = await listTogether({ list }, names, { limit: 3 })
  expect([first.jobs.map(({ id }) => id), first.next]).toEqual([['b299', 'b298', 'b297'], 'b297'])
  expect(most).toBeLessThanOrEqual(32)
  const all = await listTogether({ list }, names, { limit: 600 })
  expect([all.jobs.length, all.jobs.at(-1)!.id, all.next]).toEqual([600, 'a000', null])
})
