import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { PoolSettings, type SlurmPool } from '../../../../core/models/pools.ts'
import { newLaunchKey } from '../../../../gpu/launcher/launch-key.ts'
import { isUnanswered, refusalIn } from '../../../../gpu/launcher/slurm/commands.ts'
import { cardsIn } from '../../../../gpu/launcher/slurm/node-lines.ts'
import { commentIn } from '../../../../gpu/launcher/slurm/queue-lines.ts'
import {
  commandOnNode,
  jobIdIn,
  submitArguments,
  submitScript,
  type WrapperSettings,
} from '../../../../gpu/launcher/slurm/submission.ts'

const pool = (more: object) => PoolSettings.parse({ kind: 'slurm', card_memory: '80GiB', ...more }) as SlurmPool
const needs = { nodes: 1, cards: 2, cpus: 3.5, memoryBytes: 3 * 2 ** 30 + 1, maxMs: 90_000 }
const ids = { serverId: 'srv', launchId: 'a-1' }

test('a job is submitted with all that the pool and the launch say', () => {
  const whole = submitArguments(
    pool({
      partition: 'gpu',
      account: 'vision',
      qos: 'high',
      constraint: 'a100',
      gres: 'gpu:a100',
      time_limit: '8h',
      extra: ['--nice=9'],
    }),
    needs,
    ids,
  )
  expect(whole).toEqual([
    '--nice=9',
    '--parsable',
    '--export=NONE',
    '--no-requeue',
    '--nodes=1',
    '--ntasks=1',
    '--chdir=/',
    '--output=/dev/null',
    '--job-name=infer-srv',
    '--comment=infer 1 srv a-1',
    '--cpus-per-task=4',
    '--mem=3073M',
    '--gres=gpu:a100:2',
    '--time=2',
    '--partition=gpu',
    '--account=vision',
    '--qos=high',
    '--constraint=a100',
  ])
  const least = submitArguments(pool({}), { nodes: 1, cards: 0, cpus: 0, memoryBytes: 0, maxMs: null }, ids)
  expect(least.filter(one => /gres|time|mem|partition|signal|cpus/.test(one))).toEqual([
    '--cpus-per-task=1',
    '--signal=B:USR1@60',
  ])
})

test('nodes to avoid are added to those that the pool excludes', () => {
  const avoid = ['gpu3', 'gpu[5-6]']
  const args = submitArguments(pool({ extra: ['--exclude=node7,node8'] }), needs, { ...ids, avoid })
  expect(args.filter(one => one.startsWith('--exclude')).at(-1)).toBe('--exclude=node7,node8,gpu3,gpu[5-6]')
  expect(submitArguments(pool({}), needs, ids).join(' ')).not.toContain('--exclude')
})

test('a launch that spans nodes is one job with as many on each, and its script has more', () => {
  const args = submitArguments(pool({}), { ...needs, nodes: 3 }, ids)
  expect(args.filter(one => /nodes|ntasks|gres/.test(one))).toEqual([
    '--nodes=3',
    '--ntasks=3',
    '--ntasks-per-node=1',
    '--gres=gpu:2',
  ])
  const texts = { wrapper: 'one\n', nodes: 'several\n' }
  const settings = { nodes: 1, env: { KEY: "it's" } } as unknown as WrapperSettings
  expect(submitScript(texts, settings)).toBe('one\n\n\nmain("{\\"nodes\\":1,\\"env\\":{\\"KEY\\":\\"it\'s\\"}}")\n')
  const script = submitScript(texts, { ...settings, nodes: 3 })
  expect(script).toMatch(/^one\n\n\nseveral\n\n\nmain\(".*", First\)\n$/)
})

test.each([
  ['12\n', '12'],
  ['12;cluster\n', '12'],
  ['a notice of the site\n12\n', '12'],
  ['', undefined],
])('the job id in %j', (text, id) => expect(jobIdIn(text)).toBe(id))

test.each<[words: string, unanswered: boolean]>([
  ['sbatch: error: Batch job submission failed: Invalid partition name specified', false],
  ['sbatch: error: Batch job submission failed: Requested node configuration is not available', false],
  ['sbatch: error: Invalid --time specification', false],
  ["sbatch: unrecognized option '--bogus'", false],
  ['sbatch: error: Batch job submission failed: Socket timed out on send/recv operation', true],
  ['sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)', true],
  ['sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received', true],
  ['sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying', true],
  ['sbatch: error: If munged is up, restart with --num-threads=10', true],
  ['sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host', true],
  ['', true],
])('whether %j leaves open what was done: %j', (words, unanswered) => expect(isUnanswered(words)).toBe(unanswered))

test.each([
  [
    'sbatch: error: invalid partition specified: nope sbatch: error: Batch job submission failed: Invalid partition name specified',
    'Invalid partition name specified',
  ],
  ['sbatch: error: Invalid --time specification', 'Invalid --time specification'],
  [
    'sbatch: unrecognized option \'--x\' Try "sbatch --help" for more information',
    'unrecognized option \'--x\' Try "sbatch --help" for more information',
  ],
])('the refusal in %j', (words, refusal) => expect(refusalIn(words)).toBe(refusal))

test('the cards of nodes that take jobs are devices', () => {
  const text = `n1|idle|gpu:a100:2(S:0-1),shard:8
n1|idle|gpu:a100:2(S:0-1),shard:8
n2|mixed|gpu:1
n3|drained|gpu:2
n4|idle*|gpu:2
n5|idle|(null)
n6|idle|gpu:h100:1
`
  const all = cardsIn(text, 'gpu', 80)
  expect(all.devices.map(({ id, totalBytes }) => [id, totalBytes])).toEqual(
    ['n1/gpu0', 'n1/gpu1', 'n2/gpu0', 'n6/gpu0'].map(id => [id, 80]),
  )
  expect(all.unusable).toEqual(['n3 (drained)', 'n4 (idle*)'])
  expect(cardsIn(text, 'gpu:a100', 80).devices.map(({ id }) => id)).toEqual(['n1/gpu0', 'n1/gpu1'])
})

test.each([
  ['infer 1 srv a-1', { generation: 1, address: null, exit: null }],
  ['infer 1 srv a-1 g7 run fe80::1 4000', { generation: 7, address: { host: 'fe80::1', port: 4000 } }],
  ['infer 1 srv a-1 g7 exit 127 It is | missing.', { exit: { status: '127', reason: 'It is | missing.' } }],
])('the comment %j', (text, expected) =>
  expect(commentIn(text)).toMatchObject({ serverId: 'srv', launchId: 'a-1', ...expected }),
)

test.each(['', '(null)', 'infer 2 srv a-1', 'infer 1 srv', 'infer 1 srv a-1 g7 run', 'by hand'])(
  'the comment %j is none of a job of infer',
  text => expect(commentIn(text)).toBeNull(),
)

test('only an engine of this program is started as the executable of the nodes', () => {
  const self = ['/usr/bin/node', '/opt/main.cjs']
  expect(commandOnNode([...self, 'engine', 'demo'], self, '/opt/infer')).toEqual(['/opt/infer', 'engine', 'demo'])
  expect(commandOnNode([...self, 'engine'], self, undefined)).toEqual([...self, 'engine'])
  expect(commandOnNode(['vllm', 'serve'], self, '/opt/infer')).toEqual(['vllm', 'serve'])
})

test('the certificate of a launch is signed by its own key', async () => {
  const { certificate, key } = await newLaunchKey()
  const read = new X509Certificate(certificate)
  expect(read.verify(read.publicKey)).toBe(true)
  expect(read.checkIssued(read)).toBe(true)
  expect(read.ca).toBe(true)
  expect(key).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
  expect(await newLaunchKey()).not.toEqual({ certificate, key })
})
