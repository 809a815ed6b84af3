import { expect, test } from 'vitest'
import { drawnShape } from '../../../../../../server/console/app/pages/playground/form/shapes.ts'
import {
  isCut,
  type JobSummary,
  runsOf,
  seedsFor,
  submissionsOf,
} from '../../../../../../server/console/app/pages/playground/run/feed.ts'

const job = (id: string, submission?: string) =>
  ({ id, metadata: submission === undefined ? null : { source: 'playground', submission } }) as unknown as JobSummary
const unanswered = (key: string) => ({ key, task: 't', model: 'm', inputs: {}, message: '' })

test('jobs are runs, newest first, in the order in which they were asked for', () => {
  const jobs = [job('job_4', 'b.1'), job('job_3', 'b.10'), job('job_2', 'a.0'), job('job_1')]
  // The answer to `b.1` is on its way, but its job is known.
  const runs = runsOf(jobs, [unanswered('b.1'), unanswered('c.0'), unanswered('a.2')])
  expect(runs.map(run => [run.id, run.jobs.map(({ id }) => id), run.unanswered.map(({ key }) => key)])).toEqual([
    ['a', ['job_2'], ['a.2']],
    ['c', [], ['c.0']],
    ['b', ['job_4', 'job_3'], []],
    ['job_1', ['job_1'], []],
  ])
})

test.each([
  ['all of the oldest run', [job('job_3', 'b.1'), job('job_2', 'a.1'), job('job_1', 'a.0')], [], false],
  ['the end of the oldest run', [job('job_3', 'a.3'), job('job_2', 'a.2')], [], true],
  ['the oldest run without one that was refused', [job('job_2', 'a.2'), job('job_1', 'a.0')], [], true],
  ['the rest of a run on its way', [job('job_2', 'a.1')], [unanswered('a.0')], false],
  ['a job without a run', [job('job_2')], [], false],
  ['nothing', [], [], false],
])('whether there may be more of the oldest run, on a page with %s', (_, jobs, waiting, expected) => {
  expect(isCut(runsOf(jobs, waiting))).toBe(expected)
})

test('a run has a job for each model, shape and seed', () => {
  const wanted = { run: 'r', task: 't', models: ['m', 'n'], inputs: { prompt: 'p', seed: 1 }, ratios: [], seeds: [] }
  expect(submissionsOf(wanted)).toEqual([
    { key: 'r.0', task: 't', model: 'm', inputs: { prompt: 'p', seed: 1 } },
    { key: 'r.1', task: 't', model: 'n', inputs: { prompt: 'p', seed: 1 } },
  ])
  const many = submissionsOf({ ...wanted, models: ['m'], ratios: ['1:1', '9:16'], seeds: [5, 6] })
  expect(many.map(({ key, inputs }) => [key, inputs.aspect_ratio, inputs.seed])).toEqual([
    ['r.0', '1:1', 5],
    ['r.1', '1:1', 6],
    ['r.2', '9:16', 5],
    ['r.3', '9:16', 6],
  ])
})

test('variations begin with the seed that was entered', () => {
  expect(seedsFor(1, 7, () => 3)).toEqual([])
  expect(seedsFor(3, 7, () => 3)).toEqual([7, 8, 9])
  expect(seedsFor(2, undefined, () => 3)).toEqual([3, 4])
})

test.each([
  ['16:9', { width: 24, height: 14 }],
  ['portrait_4_3', { width: 18, height: 24 }],
  ['square_hd', { width: 24, height: 24 }],
  ['auto', undefined],
  ['', undefined],
])('the shape of %j is drawn', (value, drawn) => {
  expect(drawnShape(value)).toEqual(drawn)
})
