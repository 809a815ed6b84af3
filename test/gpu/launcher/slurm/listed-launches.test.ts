import { expect, test } from 'vitest'
import {
  compareJobs,
  type HeldLaunch,
  listedLaunch,
  type SlurmRecord,
} from '../../../../gpu/launcher/slurm/listed-launches.ts'
import { jobsIn } from '../../../../gpu/launcher/slurm/queue-lines.ts'

const recordOf = (launchId: string, jobId: string | null, end: SlurmRecord['end'] = null): SlurmRecord => ({
  version: 1,
  launchId,
  engineId: launchId.replace(/-\d+$/, ''),
  modelId: 'm',
  jobId,
  certificate: 'certificate',
  key: 'key',
  secrets: [],
  note: null,
  end,
})
const heldOf = (...records: SlurmRecord[]) =>
  new Map<string, HeldLaunch>(
    records.map(record => [
      record.launchId,
      { record, job: undefined, expectedFrom: 2, isEnding: false, avoids: false },
    ]),
  )
const line = (jobId: number, launchId: string, state = 'RUNNING', more = ' g5 run 10.0.0.1 40001') =>
  `${jobId}|${state}|None|gpu1|1795921173|infer 1 srv ${launchId}${more}\n`
const ended = { status: '0', reason: null, at: 1 }

test.each<[string, SlurmRecord[], text: string, list: number, ended: string[], surplus: string[]]>([
  ['one that runs', [recordOf('a-1', '1')], line(1, 'a-1'), 5, [], []],
  ['one that Slurm has forgotten', [recordOf('a-1', '1')], '', 5, ['a-1'], []],
  ['a list that may be older than the job', [recordOf('a-1', '1')], '', 1, [], []],
  ['one of which nobody knows whether it was accepted', [recordOf('a-1', null)], '', 5, [], []],
  ['the same, which was', [recordOf('a-1', null)], line(9, 'a-1', 'PENDING', ''), 5, [], []],
  ['one job too many', [recordOf('a-1', '1')], line(1, 'a-1') + line(2, 'a-1', 'PENDING', ''), 5, [], ['2']],
  ['two of an unknown start', [recordOf('a-1', null)], line(8, 'a-1', 'PENDING', '') + line(7, 'a-1'), 5, [], ['8']],
  ['a job without a record', [], line(1, 'a-1'), 5, [], ['1']],
  ['the end of a job without a record', [], line(1, 'a-1', 'FAILED'), 5, [], []],
  ['a job whose launch has ended', [recordOf('a-1', '1', ended)], line(1, 'a-1'), 5, [], ['1']],
  ['one that was queued again', [recordOf('a-1', '1')], line(1, 'a-1', 'PENDING'), 5, ['a-1'], ['1']],
  ['jobs of another server', [], line(1, 'a-1').replace('srv', 'other'), 5, [], []],
])('%s', (_name, records, text, list, expectedEnds, expectedSurplus) => {
  const compared = compareJobs(heldOf(...records), jobsIn(text, 'srv'), list)
  expect(compared.ended.map(({ launchId }) => launchId)).toEqual(expectedEnds)
  expect(compared.surplus.map(({ jobId }) => jobId)).toEqual(expectedSurplus)
})

test('a launch is listed with its address, node and end of time', () => {
  const [launch] = heldOf(recordOf('a-1', '1')).values()
  launch!.job = jobsIn(line(1, 'a-1'), 'srv')[0]
  expect(listedLaunch(launch!)).toEqual({
    launchId: 'a-1',
    engineId: 'a',
    modelId: 'm',
    state: 'running',
    reason: null,
    status: null,
    node: 'gpu1',
    pid: null,
    endpoint: { origin: 'https://10.0.0.1:40001', tls: { certificate: 'certificate', key: 'key' }, generation: 5 },
    endsAt: 1_795_921_173_000,
    note: null,
    secrets: [],
  })
  expect(listedLaunch({ ...launch!, isEnding: true })).toMatchObject({ state: 'ending' })
  // Its wrapper may end the engine as early as this.
  const record = { ...launch!.record, isWarned: true }
  expect(listedLaunch({ ...launch!, record })).toMatchObject({ endsAt: 1_795_921_053_000 })
})

test('a list of 1,000 launches takes less than 20 ms', () => {
  const ids = Array.from({ length: 1_000 }, (_, at) => `wkr_${at}-1`)
  const held = heldOf(...ids.map((id, at) => recordOf(id, String(at + 1))))
  const text = ids.map((id, at) => line(at + 1, id)).join('')
  // Processor time of this thread: other programs of the machine do not count.
  const times = Array.from({ length: 10 }, () => {
    const before = process.threadCpuUsage()
    const { found } = compareJobs(held, jobsIn(text, 'srv'), 5)
    for (const [launchId, job] of found) held.get(launchId)!.job = job
    const listed = [...held.values()].flatMap(launch => listedLaunch(launch) ?? [])
    const { user, system } = process.threadCpuUsage(before)
    return { ms: (user + system) / 1_000, listed }
  })
  expect(times[0]!.listed).toHaveLength(1_000)
  expect(times[0]!.listed.at(-1)).toMatchObject({ state: 'running', node: 'gpu1' })
  expect(Math.min(...times.map(({ ms }) => ms))).toBeLessThan(20)
})
