import { describe, expect, test } from 'vitest'
import { cpuDevice } from '../../../gpu/devices/cpu.ts'

const GiB = 2 ** 30
const machine = (files: Record<string, string>) => ({
  read: (path: string): string | undefined => files[path],
  totalBytes: 64 * GiB,
  cores: 16,
  model: 'Processor',
})

describe('the resources that a process may use', () => {
  const cases: [name: string, files: Record<string, string>, bytes: number, cores: number][] = [
    ['no control groups', {}, 64 * GiB, 16],
    [
      'version 2, unlimited',
      { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': 'max\n', '/sys/fs/cgroup/cpu.max': 'max 100000\n' },
      64 * GiB,
      16,
    ],
    [
      'version 2, limited',
      {
        '/proc/self/cgroup': '0::/\n',
        '/sys/fs/cgroup/memory.max': `${8 * GiB}\n`,
        '/sys/fs/cgroup/cpu.max': '250000 100000\n',
      },
      8 * GiB,
      2,
    ],
    [
      'the tightest group above counts',
      {
        '/proc/self/cgroup': '0::/a/b\n',
        '/sys/fs/cgroup/a/b/memory.max': 'max',
        '/sys/fs/cgroup/a/memory.max': `${4 * GiB}`,
        '/sys/fs/cgroup/a/b/cpu.max': '400000 100000',
      },
      4 * GiB,
      4,
    ],
    [
      'less than a core is one core',
      { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '50000 100000\n' },
      64 * GiB,
      1,
    ],
    [
      'version 1, limited',
      {
        '/proc/self/cgroup': '5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n',
        '/sys/fs/cgroup/memory/x/memory.limit_in_bytes': `${2 * GiB}\n`,
        '/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us': '300000\n',
        '/sys/fs/cgroup/cpu/x/cpu.cfs_period_us': '100000\n',
      },
      2 * GiB,
      3,
    ],
    [
      'version 1, unlimited',
      {
        '/proc/self/cgroup': '4:memory:/\n1:cpu:/\n',
        '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      },
      64 * GiB,
      16,
    ],
    ['nonsense', { '/proc/self/cgroup': 'what\n0::\n', '/sys/fs/cgroup/memory.max': 'x' }, 64 * GiB, 16],
  ]
  test.each(cases)('%s', (_name, files, totalBytes, cores) => {
    expect(cpuDevice(machine(files))).toMatchObject({ id: 'cpu', kind: 'cpu', totalBytes, cores, cudaId: null })
  })
})

test('this machine has a processor with memory', () => {
  const here = cpuDevice()
  expect(here.totalBytes).toBeGreaterThan(100 * 2 ** 20)
  expect(here.cores).toBeGreaterThanOrEqual(1)
})

test('cores with several threads are counted once, and no more of them than may be used', () => {
  const cpuinfo = (threads: number, cores: number) =>
    Array.from({ length: threads }, (_, at) =>
      ['processor', 'physical id', 'siblings', 'core id']
        .map((name, column) => `${name}\t: ${[at, 0, 16, at % cores][column]}`)
        .join('\n'),
    ).join('\n\n')
  const physical = (text: string, more: Record<string, string> = {}) =>
    cpuDevice(machine({ '/proc/cpuinfo': `${text}\n`, ...more })).physicalCores
  expect([physical(cpuinfo(16, 8)), physical(cpuinfo(16, 16)), physical('processor : 0')]).toEqual([8, 16, 16])
  const limited = { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '400000 100000\n' }
  expect(physical(cpuinfo(16, 8), limited)).toBe(4)
})
