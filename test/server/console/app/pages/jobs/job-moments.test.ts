import { expect, test } from 'vitest'
import { momentsOf } from '../../../../../../server/console/app/pages/jobs/job-moments.ts'

const job = { status: 'completed', attempts: 2, created_at: 10, started_at: 14, finished_at: 16 }
const moment = (type: string, at: number, attempt: number) => ({ type: `job.${type}`, at, attempt })
const past = [moment('created', 10, 0), moment('started', 11, 1), moment('retrying', 12, 1), moment('started', 14, 2)]
const texts = (moments: ReturnType<typeof momentsOf>) => moments.map(({ type, at }) => `${type.slice(4)} ${at}`)

test.each([
  ['without events', [], ['created 10', 'started 14', 'completed 16']],
  ['with its past', past, ['created 10', 'started 11', 'retrying 12', 'started 14', 'completed 16']],
  [
    'with the same event twice',
    [...past, ...past],
    ['created 10', 'started 11', 'retrying 12', 'started 14', 'completed 16'],
  ],
])('a job %s says what happened, each once and in order', (_, source, said) => {
  expect(texts(momentsOf(job, source))).toEqual(said)
})

test('a job that waits again has not ended', () => {
  const waiting = { status: 'pending', attempts: 1, created_at: 10, started_at: null, finished_at: null }
  expect(texts(momentsOf(waiting, [], [moment('retrying', 12, 1), moment('started', 11, 1)]))).toEqual([
    'created 10',
    'started 11',
    'retrying 12',
  ])
})
