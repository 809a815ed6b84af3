import { expect, test } from 'vitest'
import { PoolSettings, type SlurmPool } from '../../../core/models/pools.ts'
import { faultFinding } from '../../../gpu/pool-checks/pool-findings.ts'
import { cardsFinding, jobFinding, partitionFinding, trialFindings } from '../../../gpu/pool-checks/slurm-findings.ts'
import { machineFindings, modelsFinding, programsFinding, suppliesIn } from '../../../gpu/pool-checks/ssh-findings.ts'

const pool = (changes: object = {}) =>
  PoolSettings.parse({ kind: 'slurm', card_memory: '80GiB', ...changes }) as SlurmPool

test.each<[name: string, text: string, settings: object, state: string, detail: RegExp]>([
  ['the default', 'gpu*|up|infinite\nother|up|1:00:00', {}, 'fine', /^gpu takes jobs$/],
  ['no default', 'other|up|infinite', {}, 'broken', /no default partition/],
  ['one that is named', 'a100|up|1-00:00:00', { partition: 'a100', time_limit: '8h' }, 'fine', /jobs of 1-00:00:00/],
  ['one that is not there', '', { partition: 'a100' }, 'broken', /no partition 'a100'/],
  ['one that is closed', 'a100|drain|infinite', { partition: 'a100' }, 'broken', /takes no jobs now \(drain\)/],
  ['a time that is too long', 'a|up|30:00', { partition: 'a', time_limit: '31m' }, 'broken', /allows 30:00 for a job/],
  ['the longest of two', 'a|up|30:00\nb|up|2:00:00', { partition: 'a,b', time_limit: '1h' }, 'fine', /^a, b takes/],
])('partition of a cluster: %s', (_name, text, settings, state, detail) =>
  expect(partitionFinding(text, pool(settings))).toMatchObject({
    state,
    detail: expect.stringMatching(detail) as string,
  }),
)

test.each<[name: string, text: string, needed: number, state: string, detail: RegExp]>([
  ['enough', 'n1|idle|gpu:a100:4\nn2|mixed|gpu:a100:2', 4, 'fine', /^6 of 'gpu' on 2 nodes$/],
  ['fewer on a node', 'n1|idle|gpu:2\nn2|idle|gpu:2', 4, 'broken', /asks for 4, and no node has more than 2/],
  ['a node that is down', 'n1|idle|gpu:2\nn2|down|gpu:2', 1, 'warning', /take no jobs: n2 \(down\)/],
  ['none', 'n1|idle|(null)', 1, 'broken', /no node has the generic resource 'gpu'/],
])('GPUs of a cluster: %s', (_name, text, needed, state, detail) =>
  expect(cardsFinding(text, pool(), needed)).toMatchObject({ state, detail: expect.stringMatching(detail) as string }),
)

test('a job that Slurm refuses is refused with its message', () => {
  const fault = 'allocation failure: Invalid account or account/partition combination specified'
  expect(jobFinding({ ok: false, fault: `sbatch: error: ${fault}` }, 2)).toMatchObject({
    state: 'broken',
    detail: `Slurm refuses a job with 2 GPUs: ${fault}`,
  })
  expect(jobFinding({ ok: true, fault: '' }, 1).detail).toBe('Slurm accepts a job with 1 GPU')
})

test.each<[trial: Parameters<typeof trialFindings>[0], shares: boolean, found: string[]]>([
  [
    { state: 'answered', node: 'n1', body: '{"python":"3.9.2","missing":[]}' },
    true,
    ['fine n1 has answered over TLS, with Python 3.9.2', 'fine n1 has the models', 'fine n1 shares it'],
  ],
  [
    { state: 'answered', node: 'n1', body: '{"python":"3.9.2","missing":["/models/a"]}' },
    false,
    ['fine n1 has answered', 'broken n1 does not have /models/a', 'warning n1 does not share it'],
  ],
  [
    { state: 'waiting', hasStarted: false, reason: 'It waits for Slurm.' },
    false,
    ['warning it has not answered in time'],
  ],
  [{ state: 'failed', reason: 'Its node has failed.' }, false, ['broken Its node has failed']],
])('a trial job: %j', (trial, shares, found) => {
  const findings = trialFindings(trial, shares).map(({ state, detail }) => `${state} ${detail}`)
  expect(findings).toHaveLength(found.length)
  for (const [at, text] of found.entries()) expect(findings[at]).toContain(text)
})

test('what models with several nodes need is looked for on the node of the trial job', () => {
  const found = (missing: string[]) =>
    trialFindings({ state: 'answered', node: 'n1', body: JSON.stringify({ python: '3.9', missing }) }, true, ['srun'])
  expect(found(['srun'])).toMatchObject([
    { name: 'trial job' },
    { name: 'srun', state: 'broken', detail: expect.stringMatching(/^not on PATH on n1/) as string },
    { name: 'files there', state: 'fine' },
    { name: 'data directory' },
  ])
  expect(found(['/m'])).toMatchObject([
    {},
    { name: 'srun', state: 'fine' },
    { name: 'files there', state: 'broken', detail: 'n1 does not have /m' },
    {},
  ])
})

test.each([
  ["'box' accepts no key. Add a key: ssh-copy-id box.", "'box' accepts no key", 'Add a key: ssh-copy-id box.'],
  ["The host 'a.b.c' ended (255).", "The host 'a.b.c' ended (255)", 'else'],
  ['no full stop', 'no full stop', 'else'],
])('the fault %j', (message, detail, advice) =>
  expect(faultFinding('connection', message, 'else')).toMatchObject({ detail, advice }),
)

test('programs and space of a machine', () => {
  const df = '/dev/sda1 1000 600 400 60% /home'
  const complete = suppliesIn(`\n${df}\n`)
  expect(complete).toEqual({ missing: [], freeBytes: 400 * 1024 })
  expect(programsFinding(complete).state).toBe('fine')
  expect(programsFinding(suppliesIn(`flock tar \n${df}`))).toMatchObject({
    state: 'broken',
    detail: 'not installed: flock, tar',
  })
})

test.each([
  [true, 5e9, 'fine', 'all 1 are there; 5.0 GB are free'],
  [false, 5e9, 'warning', '1 of 1 are not there: /m; 5.0 GB are free'],
  [false, 1e9, 'broken', '1 of 1 are not there: /m; they have 4.0 GB, and 1.0 GB are free'],
])('files of a machine, there: %s, free: %d', (isThere, freeBytes, state, detail) =>
  expect(modelsFinding([{ path: '/m', bytes: 4e9, isThere }], { missing: [], freeBytes })).toMatchObject({
    state,
    detail,
  }),
)

test('of the doctor there, what is about the machine is shown', () => {
  const [state, detail, advice] = ['fine', 'x', null]
  const findings = ['GPUs', 'address', 'backend cuda', 'database'].map(name => ({ name, state, detail, advice }))
  expect(machineFindings(JSON.stringify({ findings }))?.map(({ name }) => name)).toEqual(['GPUs', 'backend cuda'])
  expect(machineFindings('bash: no such file')).toBeUndefined()
})
