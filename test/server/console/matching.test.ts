import { expect, test } from 'vitest'
import { matching } from '../../../server/console/app/components/matching.ts'

const choices = [
  { id: 'jobs', name: 'Jobs', group: 'Pages' },
  { id: 'chat', name: 'infer/tiny-chat', note: 'Loaded', group: 'Models' },
  { id: 'embed', name: 'infer/tiny-embed', note: 'Not loaded', group: 'Models' },
]

test.each([
  ['', ['jobs', 'chat', 'embed']],
  ['  ', ['jobs', 'chat', 'embed']],
  ['tiny', ['chat', 'embed']],
  ['LOADED tiny', ['chat', 'embed']],
  ['not embed', ['embed']],
  ['models chat', ['chat']],
  ['nothing', []],
])('%j finds %j', (query, ids) => {
  expect(matching(choices, query).map(({ id }) => id)).toEqual(ids)
})
