import { expect, test } from 'vitest'
import { drawFinding, drawVerdict, type State } from '../../../cli/doctor/finding.ts'
import {
  checkAddress,
  checkConfiguration,
  checkDirectory,
  checkDisk,
  checkModelFiles,
} from '../../../cli/doctor/installation.ts'
import { plainPaint } from '../../../cli/terminal/styled-line.ts'

const directory = { path: '/data', mode: 0o700, owner: 1000, user: 1000, fileSystem: 0xef53, readable: [] }

test.each([
  ['a private directory of this user', {}, 'fine', 'only you have access'],
  ['a directory that does not exist yet', { mode: undefined }, 'fine', 'first start'],
  ['a directory of another user', { owner: 0 }, 'broken', 'belongs to user 0'],
  ['a directory of another user, as root', { owner: 1000, user: 0 }, 'fine', 'only you have access'],
  ['a directory that others can write to', { mode: 0o777 }, 'broken', 'mode 777'],
  ['a directory that the group can write to', { mode: 0o770 }, 'broken', 'mode 770'],
  ['a directory that others can read', { mode: 0o755 }, 'warning', 'mode 755'],
  ['secrets that others can read', { mode: 0o755, readable: ['root-token'] }, 'warning', 'root-token'],
  ['a directory on NFS', { fileSystem: 0x6969 }, 'warning', 'NFS'],
])('the data directory: %s', (_, facts, state, detail) => {
  const finding = checkDirectory({ ...directory, ...facts })
  expect(finding.state).toBe(state)
  expect(finding.detail).toContain(detail)
})

const gib = 2 ** 30
test.each([
  [10 * gib, 'fine'],
  [2 * gib, 'fine'],
  [1.5 * gib, 'warning'],
  [gib, 'warning'],
  [gib - 1, 'broken'],
])('with %d bytes free and a threshold of 1 GiB the disk is %s', (freeBytes, state) => {
  expect(checkDisk({ path: '/data', freeBytes, minFreeBytes: gib }).state).toBe(state)
})

const running = { url: 'http://127.0.0.1:8787', pid: 7, ready: true }
test.each([
  ['free', { running: undefined, refusal: undefined }, 'fine', 'is free'],
  ['in use by the running server', { running, refusal: undefined }, 'fine', 'process 7'],
  [
    'that of a server for all addresses of the machine',
    { running: { ...running, listen: '0.0.0.0:8787' }, refusal: undefined },
    'fine',
    'the server listens on 0.0.0.0:8787, here http://127.0.0.1:8787 (process 7)',
  ],
  ['used by a server that is not ready', { running: { ...running, ready: false }, refusal: undefined }, 'warning', ''],
  ['taken', { running: undefined, refusal: 'EADDRINUSE' }, 'broken', 'taken by another program'],
  ['not an address of this machine', { running: undefined, refusal: 'EADDRNOTAVAIL' }, 'broken', 'EADDRNOTAVAIL'],
])('the address is %s', (_, facts, state, detail) => {
  const finding = checkAddress({ listen: '127.0.0.1:8787', ...facts })
  expect(finding.state).toBe(state)
  expect(finding.detail).toContain(detail)
})

const configuration = { path: '/data/infer.yaml', exists: true, fault: undefined, models: 1 }
test.each([
  ['a valid file', {}, 'fine', '1 model'],
  ['none', { exists: false, models: 0 }, 'fine', 'models that ship'],
  ['a file without models', { models: 0 }, 'fine', 'those that ship'],
  ['an invalid file', { fault: 'infer.yaml:3: models.0.id: wrong' }, 'broken', 'infer.yaml:3'],
])('the configuration: %s', (_, facts, state, detail) => {
  const finding = checkConfiguration({ ...configuration, ...facts })
  expect(finding.state).toBe(state)
  expect(finding.detail).toContain(detail)
})

test('a model whose file is missing is named', () => {
  const there = { id: 'a', source: '/a.gguf', exists: true }
  expect(checkModelFiles([], false).state).toBe('fine')
  expect(checkModelFiles([there], false).state).toBe('fine')
  const missing = { id: 'b', source: '/b.gguf', exists: false }
  expect(checkModelFiles([missing], true).advice).toBe('Run: npm run build')
  expect(checkModelFiles([there, missing], false)).toMatchObject({
    state: 'broken',
    detail: 'b: there is no /b.gguf',
  })
})

test('a finding is one line, and the advice is below it', () => {
  expect(drawFinding({ name: 'disk', state: 'fine', detail: 'enough', advice: null }, plainPaint)).toBe(
    'fine     disk              enough',
  )
  expect(drawFinding({ name: 'disk', state: 'broken', detail: 'full', advice: 'Make room.' }, plainPaint)).toBe(
    'broken   disk              full\n                           → Make room.',
  )
})

test.each([
  [['fine', 'fine'], 'Everything is fine.'],
  [['fine', 'warning'], 'Everything works; 1 warning.'],
  [['broken', 'fine'], '1 problem to repair.'],
  [['broken', 'broken', 'warning', 'warning'], '2 problems to repair, 2 warnings.'],
] as [State[], string][])('%j: %s', (states, verdict) => {
  expect(drawVerdict(states.map(state => ({ name: '', state, detail: '', advice: null })))).toBe(verdict)
})
