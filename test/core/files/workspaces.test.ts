import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openWorkspaces } from '../../../core/files/workspaces.ts'
import { newId } from '../../../core/ids.ts'
import { openLog } from '../../../core/log.ts'

let directory: string
let lines: string[]
const log = openLog('info', line => lines.push(line))
beforeEach(() => {
  lines = []
  directory = mkdtempSync(join(tmpdir(), 'infer-workspaces-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const most = 1 << 20

test('a workspace is a private folder of its job, and is removed with its content', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  const job = newId('job')
  let folder: string
  {
    await using workspace = await workspaces.make(job)
    folder = workspace.folder
    expect(folder).toMatch(new RegExp(`/work/${job}-\\w{6}$`))
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(join(directory, 'work')).mode & 0o777).toBe(0o700)
    mkdirSync(join(folder, 'deep', 'deeper'), { recursive: true })
    writeFileSync(join(folder, 'deep', 'deeper', 'x'), 'x')
    chmodSync(join(folder, 'deep'), 0o000)
  }
  expect(existsSync(folder)).toBe(false)
  expect(lines).toEqual([])
})

test('removing one follows no link out of it', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  mkdirSync(join(directory, 'precious'))
  writeFileSync(join(directory, 'precious', 'x'), 'x')
  {
    await using workspace = await workspaces.make(newId('job'))
    symlinkSync(join(directory, 'precious'), join(workspace.folder, 'out'))
  }
  expect(readdirSync(join(directory, 'precious'))).toEqual(['x'])
})

test('workspaces of an earlier server are removed at the start', async () => {
  mkdirSync(join(directory, 'work', 'job_x-abc'), { recursive: true })
  writeFileSync(join(directory, 'work', 'job_x-abc', 'half.mp4'), 'x')
  await openWorkspaces(join(directory, 'work'), log)
  expect(readdirSync(join(directory, 'work'))).toEqual([])
})

test('without a job there is no workspace', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  await expect(workspaces.make('../../x')).rejects.toThrow('workspace')
})

/** What an engine may write under the name of its output, and the resulting error. */
const outputs: [string, (path: string, folder: string) => void, RegExp][] = [
  ['nothing', () => {}, /cannot be read/],
  ['a link to a file outside', (path, folder) => symlinkSync(join(folder, '..', '..', 'secret'), path), /is a link/],
  [
    'a link to a file inside',
    (path, folder) => {
      writeFileSync(join(folder, 'real'), 'x')
      symlinkSync(join(folder, 'real'), path)
    },
    /is a link/,
  ],
  ['a link that leads nowhere', path => symlinkSync('/nowhere', path), /is a link/],
  ['a link to a device', path => symlinkSync('/dev/zero', path), /is a link/],
  ['a hard link to a file outside', (path, folder) => linkSync(join(folder, '..', '..', 'secret'), path), /hard links/],
  ['a pipe that nobody writes into', path => void execFileSync('mkfifo', [path]), /not a regular file/],
  ['a folder', path => mkdirSync(path), /not a regular file/],
  ['a file that may not be read', path => writeFileSync(path, 'x', { mode: 0o000 }), /cannot be read/],
  ['an empty file', path => writeFileSync(path, ''), /is empty/],
  [
    'a huge file',
    path => {
      writeFileSync(path, '')
      truncateSync(path, 2 ** 40)
    },
    /larger than 1048576 bytes/,
  ],
]

test.each(outputs)('from an engine, %s is refused', async (what, make, why) => {
  // Root can read files without any permissions.
  if (what === 'a file that may not be read' && process.getuid?.() === 0) return
  writeFileSync(join(directory, 'secret'), 'secret')
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  await using workspace = await workspaces.make(newId('job'))
  const path = join(workspace.folder, 'out.png')
  make(path, workspace.folder)
  await expect(workspaces.open(path, most)).rejects.toMatchObject({
    code: 'worker_error',
    message: expect.stringMatching(why) as string,
  })
})

test('from an engine, a socket is refused', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  await using workspace = await workspaces.make(newId('job'))
  const path = join(workspace.folder, 's')
  const server = createServer().listen(path)
  await new Promise(resolve => server.once('listening', resolve))
  await expect(workspaces.open(path, most)).rejects.toMatchObject({ code: 'worker_error' })
  await new Promise(resolve => server.close(resolve))
})

test('a path outside the workspaces is not opened, in any spelling', async () => {
  writeFileSync(join(directory, 'secret'), 'secret')
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  await using workspace = await workspaces.make(newId('job'))
  const { folder } = workspace
  mkdirSync(join(folder, 'sub'))
  writeFileSync(join(folder, 'sub', 'x'), 'x')
  writeFileSync(join(directory, 'work', 'x'), 'x')
  const wrong = [
    join(directory, 'secret'),
    `${folder}/../../secret`,
    `${folder}/..`,
    `${folder}/.`,
    `${folder}/`,
    folder,
    `${folder}//x`,
    `${folder}/./x`,
    `${folder}/sub/x`,
    `${folder}/sub/../x`,
    join(directory, 'work', 'x'),
    'x',
    '',
    '/etc/passwd',
    '/proc/self/environ',
  ]
  writeFileSync(join(folder, 'x'), 'x')
  for (const path of wrong)
    await expect(workspaces.open(path, most), path).rejects.toMatchObject({ code: 'worker_error' })
  await using file = await workspaces.open(join(folder, 'x'), most)
  expect(await file.readFile('utf8')).toBe('x')
})

test('a workspace replaced by a link is refused', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  await using workspace = await workspaces.make(newId('job'))
  mkdirSync(join(directory, 'elsewhere'))
  writeFileSync(join(directory, 'elsewhere', 'x'), 'x')
  renameSync(workspace.folder, `${workspace.folder}-old`)
  symlinkSync(join(directory, 'elsewhere'), workspace.folder)
  await expect(workspaces.open(join(workspace.folder, 'x'), most)).rejects.toMatchObject({ code: 'worker_error' })
})

test('a data directory behind a link works', async () => {
  mkdirSync(join(directory, 'disk'))
  symlinkSync(join(directory, 'disk'), join(directory, 'data'))
  const workspaces = await openWorkspaces(join(directory, 'data', 'work'), log)
  await using workspace = await workspaces.make(newId('job'))
  writeFileSync(join(workspace.folder, 'x'), 'x')
  await using file = await workspaces.open(join(workspace.folder, 'x'), most)
  expect(await file.readFile('utf8')).toBe('x')
})

test('a lingering workspace stays for a late writer, and is removed soon after', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  let folder: string
  {
    await using workspace = await workspaces.make(newId('job'))
    folder = workspace.folder
    workspace.linger(200)
  }
  writeFileSync(join(folder, 'late'), 'x')
  await expect.poll(() => existsSync(folder)).toBe(false)
})

test('an engine gets its own folder to read and its own to write', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  const stored = join(directory, 'file-1.png')
  writeFileSync(stored, 'picture')
  const job = newId('job')
  {
    await using workspace = await workspaces.makeFor(job, 'wkr_1')
    const input = await workspace.share(stored)
    expect(input).toMatch(new RegExp(`/work/wkr_1/in/${job}-\\w{6}/file-1.png$`))
    expect(readFileSync(input, 'utf8')).toBe('picture')
    expect(workspace.folder).toMatch(new RegExp(`/work/wkr_1/out/${job}-\\w{6}$`))
    writeFileSync(join(workspace.folder, 'x'), 'made')
    await using file = await workspaces.open(join(workspace.folder, 'x'), most)
    expect(await file.readFile('utf8')).toBe('made')
    await expect(workspaces.open(input, most)).rejects.toMatchObject({ code: 'worker_error' })
  }
  expect(readdirSync(join(directory, 'work', 'wkr_1', 'in'))).toEqual([])
  expect(readdirSync(join(directory, 'work', 'wkr_1', 'out'))).toEqual([])
  expect(readFileSync(stored, 'utf8')).toBe('picture')
  expect(lines).toEqual([])
})

test('the folder of an engine cannot have a name that leads elsewhere', async () => {
  const workspaces = await openWorkspaces(join(directory, 'work'), log)
  await expect(workspaces.makeFor(newId('job'), '../precious')).rejects.toThrow('is not the id of an engine')
})

test('the folders of engines that outlived the server stay the same, without the files of its jobs', async () => {
  const work = join(directory, 'work')
  const { makeFor } = await openWorkspaces(work, log)
  for (const engine of ['wkr_kept', 'wkr_ended']) await makeFor(newId('job'), engine)
  const inode = statSync(join(work, 'wkr_kept', 'out')).ino
  await openWorkspaces(work, log, new Set(['wkr_kept']))
  expect(readdirSync(work, { recursive: true, encoding: 'utf8' }).toSorted()).toEqual([
    'wkr_kept',
    'wkr_kept/in',
    'wkr_kept/out',
  ])
  expect(statSync(join(work, 'wkr_kept', 'out')).ino).toBe(inode)
})
