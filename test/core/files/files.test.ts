import { createHash, createSecretKey, randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { type Files, openFiles } from '../../../core/files/files.ts'
import { newId } from '../../../core/ids.ts'
import { openLog } from '../../../core/log.ts'
import { openSqliteStore } from '../../../core/store/sqlite/store.ts'
import type { FileRecord, Store } from '../../../core/store/store.ts'

let dataDir: string
let store: Store
let files: Files
let lines: string[]
const organization = newId('org')
const log = openLog('info', line => lines.push(line))
const linkKey = createSecretKey(randomBytes(32))
const limits = { link_lifetime: 86_400_000, output_size: 1 << 20 }
const open = (with_: Partial<Store> = {}) => openFiles({ dataDir, store: { ...store, ...with_ }, linkKey, limits, log })

beforeEach(async () => {
  lines = []
  dataDir = mkdtempSync(join(tmpdir(), 'infer-files-'))
  store = await openSqliteStore({ dataDir, log, minFreeBytes: 0, ballastBytes: 0, onFatal() {} })
  await store.organizations.create({
    id: organization,
    name: `of ${organization}`,
    plan: 'free',
    requestsPerMinute: null,
    jobsPerMinute: null,
    createdAt: Date.now(),
  })
  files = await open()
})
afterEach(async () => {
  vi.useRealTimers()
  await files.close()
  await store.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const facts = { name: 'cat.png', contentType: 'image/png', purpose: 'output', expiresAt: null } as const
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
/** Everything below the files' folder, relative to it. */
const onDisk = () =>
  readdirSync(join(dataDir, 'files'), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
async function* pieces(...all: (Uint8Array | Error)[]) {
  for (const piece of all) {
    if (piece instanceof Error) throw piece
    yield piece
  }
}

test('a stored file is on the disk under its id, private, and matches its row', async () => {
  const bytes = randomBytes(100_000)
  const file = await files.keep(organization, bytes, { ...facts, width: 3, height: 2, expiresAt: Date.now() + 1e6 })
  expect(file).toMatchObject({
    organizationId: organization,
    name: 'cat.png',
    contentType: 'image/png',
    purpose: 'output',
    bytes: 100_000,
    sha256: sha256(bytes),
    width: 3,
    height: 2,
    durationMs: null,
    jobId: null,
    removedAt: null,
  })
  const path = files.pathOf(file)
  expect(path).toBe(join(dataDir, 'files', organization, `${file.id}.png`))
  expect(readFileSync(path).equals(bytes)).toBe(true)
  expect(await files.find(organization, file.id)).toEqual(file)
  expect(onDisk()).toEqual([path])
})

test('file modes: folders are 0700 and files 0600, whatever the umask is', async () => {
  const umask = process.umask(0)
  try {
    const file = await files.keep(organization, Buffer.from('x'), facts)
    const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
    expect(mode(files.pathOf(file))).toBe('600')
    for (const folder of ['files', 'files/incoming', `files/${organization}`, 'work'])
      expect([folder, mode(join(dataDir, folder))]).toEqual([folder, '700'])
  } finally {
    process.umask(umask)
  }
})

test('another organization finds no file, and neither does a wrong id', async () => {
  const file = await files.keep(organization, Buffer.from('x'), facts)
  expect(await files.find(newId('org'), file.id)).toBeUndefined()
  expect(await files.find(organization, newId('file'))).toBeUndefined()
  expect(await files.find(organization, '../../etc/passwd')).toBeUndefined()
  expect(await files.remove(newId('org'), file.id)).toBeUndefined()
  expect(existsSync(files.pathOf(file))).toBe(true)
})

test('a removed file is deleted at once, and its row says so', async () => {
  const file = await files.keep(organization, Buffer.from('x'), facts)
  expect(await files.remove(organization, file.id)).toMatchObject({ id: file.id })
  expect(existsSync(files.pathOf(file))).toBe(false)
  expect(await files.find(organization, file.id)).toBeUndefined()
  expect((await store.files.find(file.id))?.removedAt).not.toBeNull()
  expect(await files.remove(organization, file.id)).toMatchObject({ id: file.id })
})

test('a file that the server produces has its lines, is stored once for an id, and leaves nothing after an error', async () => {
  async function* lines(count: number, fault?: Error) {
    for (let at = 0; at < count; at++) yield `{"line":${at}}\n`
    if (fault) throw fault
  }
  const before = onDisk()
  const output = { ...facts, name: 'out.jsonl', contentType: 'application/jsonl', apiPurpose: 'batch_output' } as const
  await expect(files.api.produce(organization, lines(9, new Error('stopped')), output)).rejects.toThrow('stopped')
  expect(onDisk()).toEqual(before)
  const id = newId('file')
  const file = await files.api.produce(organization, lines(50_000), { ...output, id })
  expect(file).toMatchObject({ id, contentType: 'application/jsonl', purpose: 'output', apiPurpose: 'batch_output' })
  expect(files.pathOf(file).endsWith(`${id}.jsonl`)).toBe(true)
  const text = readFileSync(files.pathOf(file), 'utf8').split('\n')
  expect([text.length, text[0], text[49_999]]).toEqual([50_001, '{"line":0}', '{"line":49999}'])
  expect(await files.api.produce(organization, lines(1), { ...output, id })).toEqual(file)
  await expect(files.api.produce(newId('org'), lines(1), { ...output, id })).rejects.toMatchObject({ code: 'conflict' })
  expect(await files.api.find(organization, id)).toEqual(file)
  expect(await files.api.remove(organization, id)).toBe(true)
  expect(existsSync(files.pathOf(file))).toBe(false)
})

test('a file that comes in pieces is stored whole or not at all', async () => {
  const file = await files.receive(organization, pieces(Buffer.from('ab'), Buffer.from('cd')), {
    ...facts,
    maxBytes: 4,
  })
  expect(readFileSync(files.pathOf(file), 'utf8')).toBe('abcd')
  const before = onDisk()
  await expect(
    files.receive(organization, pieces(Buffer.from('ab'), Buffer.from('cde')), { ...facts, maxBytes: 4 }),
  ).rejects.toMatchObject({ code: 'payload_too_large' })
  await expect(
    files.receive(organization, pieces(Buffer.from('ab'), new Error('broke off')), { ...facts, maxBytes: 4 }),
  ).rejects.toThrow('broke off')
  expect(onDisk()).toEqual(before)
})

test('of two uploads of one file one is refused, and the file is that of the other', async () => {
  const id = newId('file')
  const gate = Promise.withResolvers<void>()
  async function* slow() {
    yield Buffer.from('first')
    await gate.promise
  }
  const first = files.receive(organization, slow(), { ...facts, id, maxBytes: 10 })
  const second = () => files.receive(organization, pieces(Buffer.from('other')), { ...facts, id, maxBytes: 10 })
  await expect(second()).rejects.toMatchObject({ code: 'conflict' })
  gate.resolve()
  const file = await first
  await expect(second()).rejects.toMatchObject({ code: 'conflict' })
  expect(readFileSync(files.pathOf(file), 'utf8')).toBe('first')
})

test('a refused row leaves no bytes', async () => {
  await files.close()
  const refused = new Failure('disk_full', 'no room')
  files = await open({ files: { ...store.files, add: () => Promise.reject(refused) } })
  await expect(files.keep(organization, Buffer.from('x'), facts)).rejects.toBe(refused)
  expect(onDisk()).toEqual([])
})

test('no upload is accepted while the store accepts no new work; outputs of engines are', async () => {
  await files.close()
  files = await open({ stats: () => ({ ...store.stats(), writable: 'The disk is nearly full.' }) })
  await expect(files.keep(organization, Buffer.from('x'), facts)).rejects.toMatchObject({ code: 'disk_full' })
  await using workspace = await files.workspace(newId('job'))
  writeFileSync(join(workspace.folder, 'out.png'), 'made')
  await files.adopt(organization, join(workspace.folder, 'out.png'), facts)
})

test("an engine's output is copied as it is now, and does not change though the engine holds it open", async () => {
  await using workspace = await files.workspace(newId('job'))
  const path = join(workspace.folder, 'out.png')
  writeFileSync(path, 'made')
  const held = openSync(path, 'r+')
  const made = await files.adopt(organization, path, { ...facts, width: 1, height: 1 })
  writeSync(held, 'lies', 0)
  expect(made).toMatchObject({ bytes: 4, sha256: sha256(Buffer.from('made')), name: 'cat.png', width: 1 })
  expect(readFileSync(files.pathOf(made), 'utf8')).toBe('made')
  expect(await files.find(organization, made.id)).toBeUndefined()
  await store.files.add(made)
  expect(await files.find(organization, made.id)).toMatchObject({ id: made.id })
})

test("an engine's output has a size limit", async () => {
  await using workspace = await files.workspace(newId('job'))
  const path = join(workspace.folder, 'out.png')
  writeFileSync(path, Buffer.alloc(limits.output_size + 1))
  await expect(files.adopt(organization, path, facts)).rejects.toMatchObject({ code: 'worker_error' })
  await expect(files.adopt(organization, path, { ...facts, maxBytes: 10 })).rejects.toMatchObject({
    code: 'worker_error',
  })
  expect(onDisk()).toEqual([])
})

test('an adopted file without a row is freed, one with a row is not', async () => {
  await using workspace = await files.workspace(newId('job'))
  const path = join(workspace.folder, 'out.png')
  writeFileSync(path, 'made')
  const [lost, kept] = [await files.adopt(organization, path, facts), await files.adopt(organization, path, facts)]
  await store.files.add(kept)
  await files.discard([lost, kept])
  expect(onDisk()).toEqual([files.pathOf(kept)])
})

test('an expired file is swept, with its bytes; others are kept', async () => {
  const over = await files.keep(organization, Buffer.from('x'), { ...facts, expiresAt: Date.now() - 1 })
  const kept = await files.keep(organization, Buffer.from('x'), { ...facts, expiresAt: Date.now() + 1e6 })
  const forever = await files.keep(organization, Buffer.from('x'), facts)
  await files.sweep()
  expect(onDisk().toSorted()).toEqual([files.pathOf(kept), files.pathOf(forever)].toSorted())
  expect((await store.files.find(over.id))?.removedAt).not.toBeNull()
  expect(await store.files.expire(Date.now(), 10)).toEqual([])
})

test('a sweep interrupted between its steps is completed later', async () => {
  const over = await files.keep(organization, Buffer.from('x'), { ...facts, expiresAt: Date.now() - 1 })
  await files.close()
  // The row is deleted, the bytes still exist: the state after a crash behind the first step.
  expect(await store.files.expire(Date.now(), 10)).toHaveLength(1)
  expect(existsSync(files.pathOf(over))).toBe(true)
  files = await open()
  await files.sweep()
  expect(existsSync(files.pathOf(over))).toBe(false)
  expect(await store.files.expire(Date.now(), 10)).toEqual([])
})

test('files that cannot be deleted hold up no others, and are not tried again at once', async () => {
  await files.close()
  const rows = Array.from(
    { length: 201 },
    () => ({ ...facts, id: newId('file'), organizationId: organization }) as unknown as FileRecord,
  )
  // A folder in place of a file cannot be deleted as one.
  for (const row of rows.slice(0, 200)) mkdirSync(join(files.pathOf(row), 'x'), { recursive: true })
  writeFileSync(files.pathOf(rows[200]!), 'x')
  const erased: string[] = []
  const stuck = {
    ...store.files,
    find: async () => rows[0],
    expire: async (_now: number, limit: number) => rows.filter(({ id }) => !erased.includes(id)).slice(0, limit),
    erased: async (ids: readonly string[]) => void erased.push(...ids),
  }
  files = await open({ files: stuck })
  await files.sweep()
  await files.sweep()
  expect(erased).toEqual([rows[200]!.id])
  expect(lines.filter(line => line.includes('could not be deleted'))).toHaveLength(200)
})

test('a failing store loses no file', async () => {
  const file = await files.keep(organization, Buffer.from('x'), facts)
  await files.close()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10 * 3_600_000 })
  const broken = () => Promise.reject(new Error('unreadable'))
  files = await open({ files: { ...store.files, find: broken, expire: async () => [] } })
  await files.sweep()
  expect(existsSync(files.pathOf(file))).toBe(true)
  expect(lines.join('')).toContain('Not all expired files could be deleted')
})

test('the start sweeps what a crash left: half-received files at once, files without a row after an hour', async () => {
  const { file, orphan } = await (async () => {
    const file = await files.keep(organization, Buffer.from('x'), facts)
    await using workspace = await files.workspace(newId('job'))
    writeFileSync(join(workspace.folder, 'out.png'), 'made')
    return { file, orphan: await files.adopt(organization, join(workspace.folder, 'out.png'), facts) }
  })()
  const half = join(dataDir, 'files', 'incoming', 'half')
  const foreign = join(dataDir, 'files', organization, 'README')
  writeFileSync(half, 'x')
  writeFileSync(foreign, 'x')
  mkdirSync(join(dataDir, 'files', 'lost+found'))
  // An old modification time does not say when the file was stored here.
  utimesSync(files.pathOf(orphan), 0, 0)
  await files.close()

  files = await open()
  await files.sweep()
  expect(existsSync(half)).toBe(false)
  expect(existsSync(files.pathOf(orphan))).toBe(true)

  await files.close()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_700_000 })
  files = await open()
  await files.sweep()
  expect(onDisk().toSorted()).toEqual([files.pathOf(file), foreign].toSorted())
})

test('a clock that jumps does not remove a file whose row is about to be written', async () => {
  await files.close()
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  files = await open()
  await files.sweep()
  vi.advanceTimersByTime(3_700_000)
  await using workspace = await files.workspace(newId('job'))
  writeFileSync(join(workspace.folder, 'out.png'), 'made')
  const made = await files.adopt(organization, join(workspace.folder, 'out.png'), facts)
  vi.setSystemTime(Date.now() + 86_400_000)
  await files.sweep()
  expect(existsSync(files.pathOf(made))).toBe(true)
  vi.advanceTimersByTime(3_700_000)
  await files.sweep()
  expect(existsSync(files.pathOf(made))).toBe(false)
})

test('missing or truncated bytes are not served as the file', async () => {
  const file = await files.keep(organization, Buffer.from('whole'), facts)
  {
    await using handle = await files.open(file)
    expect(await handle?.readFile('utf8')).toBe('whole')
  }
  writeFileSync(files.pathOf(file), 'who')
  expect(await files.open(file)).toBeUndefined()
  rmSync(files.pathOf(file))
  expect(await files.open(file)).toBeUndefined()
})

test('addresses that were issued are accepted, for reading and for uploading', () => {
  const url = new URL(files.link({ id: newId('file'), name: 'cat.png' }, 'http://x'))
  const [, , id] = url.pathname.split('/')
  expect(files.verify(id!, url.searchParams.get('exp')!, url.searchParams.get('sig')!)).toBe(true)
  expect(files.verify(newId('file'), url.searchParams.get('exp')!, url.searchParams.get('sig')!)).toBe(false)
  const uploadOptions = { organizationId: organization, name: '../cat.png', contentType: 'image/png', keptMs: null }
  const upload = files.uploadLink(uploadOptions, 'http://x')
  expect(upload.name).toBe('cat.png')
  expect(files.verifyUpload(upload.id, upload.name, new URL(upload.url).searchParams)).toEqual({
    ...uploadOptions,
    id: upload.id,
    name: 'cat.png',
  })
})
