import { expect, test } from 'vitest'
import { PoolSettings, type SlurmPool } from '../../../../core/models/pools.ts'
import type { LaunchOptions } from '../../../../gpu/launcher/launcher.ts'
import { refusalOf } from '../../../../gpu/launcher/slurm/refusal.ts'

const launch: LaunchOptions = {
  launchId: 'a-1',
  engineId: 'a',
  modelId: 'm',
  argv: ['sh', '{socket}'],
  channel: 'socket',
  env: {},
  visibleDevices: {},
  sandbox: { level: 'files', required: false, read: [], write: [], programs: [] },
}
const onPort = { channel: 'port', headers: ['authorization', 'Bearer k1'] } as const
const strict = { ...launch.sandbox, level: 'strict', required: true } as const

test.each<[name: string, of: Partial<LaunchOptions>, extra: string[], refusal: RegExp | undefined]>([
  ['an engine on a socket', {}, [], undefined],
  [
    'a program that is not here',
    { argv: ['no-such-engine'] },
    [],
    /'no-such-engine' that runs 'm' is not on PATH here/,
  ],
  ['a path, which the nodes may have alone', { argv: ['/nodes/vllm'] }, [], undefined],
  ['an engine on a port that is told its key', { ...onPort, env: { VLLM_API_KEY: 'k1' } }, [], undefined],
  ['one that is sent a key and never told it', onPort, [], /listens on a port and has no key/],
  ['one without a key', { channel: 'port' }, [], /Let a custom 'command' listen on \{socket\}/],
  ['the same where nobody else is on the node', { channel: 'port' }, ['--exclusive'], undefined],
  ['the same on an exclusive node of another meaning', { channel: 'port' }, ['--exclusive=topo'], /has no key/],
  ['a sandbox that must be there', { sandbox: strict }, [], /The sandbox 'strict' of 'm' cannot be enforced/],
])('%s', (_name, of, extra, refusal) => {
  const settings = PoolSettings.parse({ kind: 'slurm', card_memory: '80GiB', extra }) as SlurmPool
  const found = refusalOf({ ...launch, ...of }, settings, '/usr/bin:/bin')
  if (refusal) expect(found).toMatch(refusal)
  else expect(found).toBeUndefined()
})
