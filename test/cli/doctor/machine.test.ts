import { expect, test } from 'vitest'
import {
  checkCards,
  checkGatewayProcesses,
  checkLibc,
  checkMemory,
  checkOpenFiles,
  checkProgram,
  checkSavedConversations,
  checkWrapper,
  openFilesLimit,
} from '../../../cli/doctor/machine.ts'

test.each([
  ['24.21.0', 'fine'],
  ['26.0.0', 'fine'],
  ['20.20.2', 'broken'],
])('Node %s is %s', (node, state) => {
  expect(checkProgram({ version: '1.0.0', packaged: false, node, path: '/usr/bin/node' }).state).toBe(state)
})

test.each([
  ['2.34', 'fine'],
  ['2.41', 'fine'],
  ['3.0', 'fine'],
  ['2.33', 'broken'],
  ['2.9', 'broken'],
  [undefined, 'broken'],
])('glibc %s is %s', (glibc, state) => {
  expect(checkLibc(glibc).state).toBe(state)
})

test.each([
  [1, 1, 'fine'],
  [8, 16, 'fine'],
  [8, 2, 'warning'],
])('%d gateway processes on %d cores are %s', (processes, cores, state) => {
  expect(checkGatewayProcesses({ processes, cores }).state).toBe(state)
})

test.each([
  [1024, 'warning'],
  [4096, 'fine'],
  [Number.POSITIVE_INFINITY, 'fine'],
])('%d open files are %s', (limit, state) => {
  expect(checkOpenFiles(limit).state).toBe(state)
})

test.each([
  ['Max open files            1024                 524288               files', 1024],
  ['Max open files            unlimited            unlimited            files', Number.POSITIVE_INFINITY],
  ['', Number.POSITIVE_INFINITY],
])('the soft limit is read from "%s"', (text, limit) => {
  expect(openFilesLimit(`Limit   Soft Limit   Hard Limit   Units\n${text}\nMax locked memory 1 1 bytes\n`)).toBe(limit)
})

const gib = 2 ** 30

test('a lower limit of the control group is reported', () => {
  const finding = checkMemory({ totalBytes: 64 * gib, limitBytes: 8 * gib, cores: 2, oomScore: 0 })
  expect(finding.state).toBe('fine')
  expect(finding.detail).toBe('8.0 GiB (control group limit; the machine has 64.0 GiB), 2 cores')
})

test('a process that the OOM killer chooses first is a warning', () => {
  const facts = { totalBytes: gib, limitBytes: Number.POSITIVE_INFINITY, cores: 1 }
  expect(checkMemory({ ...facts, oomScore: 500 }).state).toBe('warning')
  expect(checkMemory({ ...facts, oomScore: undefined }).state).toBe('fine')
})

test('without a wrapper there is a warning with the reason', () => {
  const finding = checkWrapper({
    wrapper: { name: 'plain', promise: 'Engines stay.' },
    tried: [
      { command: 'setpriv --pdeathsig KILL', why: 'operation not permitted' },
      { command: 'bwrap --unshare-pid', why: 'bwrap is not installed' },
    ],
  })
  expect(finding.state).toBe('warning')
  expect(finding.detail).toContain('setpriv: operation not permitted; bwrap: bwrap is not installed')
})

test('a wrapper that works is named with its guarantee', () => {
  expect(checkWrapper({ wrapper: { name: 'unshare', promise: 'All end.' }, tried: [] })).toMatchObject({
    state: 'fine',
    detail: 'unshare: All end.',
  })
})

test.each([
  [
    'GPUs are listed with their memory',
    {
      devices: [{ id: 'gpu0', name: 'H200', totalBytes: 141 * gib, usedBytes: 41 * gib }],
      reason: null,
      broken: false,
    },
    'fine',
    'gpu0 H200, 100 GiB free of 141 GiB',
  ],
  [
    'sensor values of a GPU follow its memory',
    {
      devices: [
        {
          id: 'gpu0',
          name: 'H200',
          totalBytes: 141 * gib,
          usedBytes: 41 * gib,
          utilization: 0.87,
          temperatureCelsius: 64,
          powerWatts: 412.3,
          powerLimitWatts: 700,
        },
        { id: 'gpu1', name: 'L4', totalBytes: 22 * gib, usedBytes: null, temperatureCelsius: 40 },
      ],
      reason: null,
      broken: false,
    },
    'fine',
    '100 GiB free of 141 GiB, 87% utilization, 64 °C, 412 of 700 W; gpu1 L4, 22.0 GiB, 40 °C',
  ],
  [
    'what is left to others is said',
    {
      devices: [{ id: 'gpu0', name: 'L4', totalBytes: 22 * gib, usedBytes: null }],
      reason: null,
      broken: false,
      left: [{ id: 'gpu1', name: 'L4', reason: 'gpu1 is left to others (CUDA_VISIBLE_DEVICES=0).' }],
    },
    'fine',
    'gpu0 L4, 22.0 GiB; gpu1 is left to others (CUDA_VISIBLE_DEVICES=0).',
  ],
  [
    'a lost GPU is named beside the others',
    {
      devices: [{ id: 'gpu0', name: 'L4', totalBytes: 22 * gib, usedBytes: null }],
      reason: null,
      broken: false,
      lost: [{ id: 'gpu1', reason: "nvidia-smi reports 'GPU is lost' for it." }],
    },
    'warning',
    "gpu1 cannot be used: nvidia-smi reports 'GPU is lost' for it; gpu0 L4, 22.0 GiB",
  ],
  [
    'a lost GPU alone is an error',
    { devices: [], reason: null, broken: false, lost: [{ id: 'gpu0', reason: 'It fell.' }] },
    'broken',
    'gpu0 cannot be used: It fell',
  ],
  ['no GPU is ok', { devices: [], reason: 'nvidia-smi is not installed.', broken: false }, 'fine', 'processor'],
  ['a fault is an error', { devices: [], reason: 'The driver hangs.', broken: true }, 'broken', 'The driver hangs.'],
])('%s', (_, discovery, state, detail) => {
  const finding = checkCards(discovery)
  expect(finding.state).toBe(state)
  expect(finding.detail).toContain(detail)
})

test.each([
  [64, 1_000, 'warning', /has 64.0 MiB, less than the 1000 MiB/],
  [0, 1_000, 'warning', /not in main memory/],
  [2_000, 1_000, 'fine', /up to 1000 MiB/],
  [0, 0, 'fine', /caches.memory is 0/],
])('saved conversations in %i MiB of main memory, of which they may use %i, are %s', (bytes, limit, state, says) => {
  const finding = checkSavedConversations({ path: '/dev/shm', bytes: bytes << 20, limitBytes: limit << 20 })
  expect(finding.state).toBe(state)
  expect(finding.detail).toMatch(says)
})
