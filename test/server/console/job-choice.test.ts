import { expect, test } from 'vitest'
import { neighbourOf } from '../../../server/console/app/components/neighbour.ts'
import { forAll, jobsFor, toggled } from '../../../server/console/app/pages/jobs/job-choice.ts'
import { usedText } from '../../../server/console/app/pages/jobs/used-text.ts'

const job = (
  id: string,
  status: 'pending' | 'processing' | 'completed' | 'failed',
  kind: 'async' | 'sync' = 'async',
) => ({
  id,
  status,
  kind,
})
const jobs = [
  job('a', 'pending'),
  job('b', 'processing'),
  job('c', 'completed'),
  job('d', 'failed'),
  job('e', 'completed', 'sync'),
]

test.each([
  ['cancel', ['a', 'b']],
  ['retry', ['c', 'd']],
  ['remove', ['c', 'd']],
] as const)('the jobs with which one can do this: %s', (action, ids) => {
  expect(jobsFor(action, jobs)).toEqual(ids)
})

test('an id is chosen, and chosen no more', () => {
  const one = toggled(new Set(['a']), 'b')
  expect([...one]).toEqual(['a', 'b'])
  expect([...toggled(one, 'a')]).toEqual(['b'])
})

test.each([
  ['below', 'b', 1, 'c'],
  ['above', 'b', -1, 'a'],
  ['below the last', 'c', 1, 'c'],
  ['above the first', 'a', -1, 'a'],
  ['below nothing', undefined, 1, 'a'],
  ['above one that is not in the list', 'x', -1, 'c'],
] as const)('the neighbour %s', (_, id, step, expected) => {
  expect(neighbourOf(['a', 'b', 'c'], id, step)).toBe(expected)
})

test('an action runs for all, four at a time, and the first failure is kept', async () => {
  let running = 0
  let most = 0
  const { done, failure } = await forAll(['a', 'b', 'c', 'd', 'e', 'f'], async id => {
    most = Math.max(most, ++running)
    await Promise.resolve()
    running--
    if (id === 'b' || id === 'e') throw new Error(id)
  })
  expect([done, failure?.message, most]).toEqual([4, 'b', 4])
})

const nothing = {
  input_tokens: 0,
  cached_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  images: 0,
  video_seconds: 0,
  audio_seconds: 0,
  characters: 0,
  documents: 0,
  gpu_ms: 5,
  energy_joules: null,
}
test.each([
  [null, '–'],
  [{}, '–'],
  [{ input_tokens: 1_234, output_tokens: 56 }, '1.2K → 56'],
  [{ input_tokens: 7 }, '7'],
  [{ images: 1 }, '1 image'],
  [{ video_seconds: 2.5 }, '2.5 s'],
  [{ characters: 900 }, '900 characters'],
  [{ documents: 2 }, '2 documents'],
])('what was used in few characters: %j', (usage, expected) => {
  expect(usedText(usage && { ...nothing, ...usage })).toBe(expected)
})
