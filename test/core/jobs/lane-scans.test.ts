import { expect, test } from 'vitest'
import { openLaneScans } from '../../../core/jobs/lane-scans.ts'
import type { WaitingJobDetails, WaitingQuery } from '../../../core/store/store.ts'

const lane = { modelId: 'm', class: 'async', organizationId: 'org', lane: {}, arrived: 300 } as const

test('jobs of one rank, as the nodes of an execution have, are all looked at, each once', async () => {
  const jobs = Array.from(
    { length: 300 },
    (_, at) => ({ id: `job_${at}`, rank: at < 250 ? 7 : at }) as WaitingJobDetails,
  )
  const read = ({ from, limit }: WaitingQuery) =>
    Promise.resolve(jobs.filter(({ rank }) => rank >= from).slice(0, limit))
  const scans = openLaneScans({ read, now: () => 0 })
  const seen: string[] = []
  const look = (job: WaitingJobDetails, budget: { jobs: number }) => {
    budget.jobs--
    seen.push(job.id)
    return Promise.resolve({ at: 1 })
  }
  for (let tick = 0; tick < 20; tick++) await scans.continue([lane], { budget: { rows: 512, jobs: 64 } }, look)
  expect(seen).toEqual(jobs.map(({ id }) => id))
})

test('a lane that was empty meanwhile is looked at anew, although as many jobs have arrived in it', async () => {
  const jobs = [{ id: 'job_1', rank: 1 } as WaitingJobDetails]
  const read = ({ from }: WaitingQuery) => Promise.resolve(jobs.filter(({ rank }) => rank >= from))
  const scans = openLaneScans({ read, now: () => 0 })
  const seen: string[] = []
  const look = ({ id }: WaitingJobDetails) => {
    seen.push(id)
    return Promise.resolve(undefined)
  }
  const next = (of: object) => scans.continue([{ ...lane, ...of, arrived: 1 }], { budget: { rows: 9, jobs: 9 } }, look)
  await next({ lane: {} })
  jobs[0] = { id: 'job_2', rank: 2 } as WaitingJobDetails
  await next({ lane: {} })
  expect(seen).toEqual(['job_1', 'job_2'])
})
