import { expect, test } from 'vitest'
import { type JobPage, mergedPage } from '../../../core/jobs/all-jobs.ts'

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
