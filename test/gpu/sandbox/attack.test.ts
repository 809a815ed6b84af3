import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SandboxRequirements, SandboxTool } from '../../../gpu/sandbox/level.ts'
import { unconfined } from '../../../gpu/sandbox/level.ts'
import { noWrapper } from '../../../gpu/sandbox/wrapper.ts'
import { launcherIn, launchOptions, temporary } from '../launcher/_launch.ts'
import { toolsHere } from './_tools.ts'

/** Attempts of an engine to escape, really executed, at each level and with each tool that creates a sandbox. */
const intruder = join(import.meta.dirname, '../../fixtures/intruder.ts')

let server: Server
let port: number
beforeAll(async () => {
  server = createServer(socket => socket.end()).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  port = (server.address() as { port: number }).port
})
afterAll(() => void server.close())

/** A data directory like that of a server, with secrets in it, which is also reachable through a link. */
function dataDirectory() {
  const folder = temporary()
  const dataDir = join(folder, 'data')
  for (const name of ['files/org_1', 'work/wkr_other/in', 'work/wkr_other/out/job_1-abc', 'run/wkr_other-1'])
    mkdirSync(join(dataDir, name), { recursive: true })
  for (const name of [
    'infer.db',
    'root-token',
    'master-key',
    'files/org_1/file-1.png',
    'work/wkr_other/out/job_1-abc/x',
  ])
    writeFileSync(join(dataDir, name), 'secret', { mode: 0o600 })
  symlinkSync(dataDir, join(folder, 'alias'))
  return { folder, dataDir }
}

async function tried(
  attempts: Record<string, [string, string]>,
  {
    tool,
    dataDir,
    launchId = `try-${process.pid}`,
    ...sandbox
  }: Partial<SandboxRequirements> & { tool: SandboxTool | null; dataDir: string; launchId?: string },
): Promise<Record<string, string>> {
  const launcher = await launcherIn(
    dataDir,
    noWrapper,
    'boot',
    tool ? { tool } : { tool: null, why: 'not in this test' },
  )
  const argv = [process.execPath, intruder, JSON.stringify(attempts)]
  const { exited } = await launcher.start(launchOptions(launchId, [], { argv, sandbox: { ...unconfined, ...sandbox } }))
  await exited
  const line = launcher.logs(launchId).find(text => text.startsWith('tried '))
  if (!line) throw new Error(launcher.logs(launchId).join('\n'))
  return JSON.parse(line.slice('tried '.length)) as Record<string, string>
}

const onFiles = (folder: string, dataDir: string): Record<string, [string, string]> => ({
  'the database': ['read', join(dataDir, 'infer.db')],
  'the database, to write': ['overwrite', join(dataDir, 'infer.db')],
  'the database by another name': ['read', join(folder, 'alias', 'infer.db')],
  'the root token': ['read', join(dataDir, 'root-token')],
  'the root token, to write': ['open', join(dataDir, 'root-token')],
  'the master key': ['read', join(dataDir, 'master-key')],
  'the master key, to write': ['open', join(dataDir, 'master-key')],
  'files of organizations': ['list', join(dataDir, 'files')],
  'a stored file': ['read', join(dataDir, 'files', 'org_1', 'file-1.png')],
  "another engine's jobs": ['read', join(dataDir, 'work', 'wkr_other', 'out', 'job_1-abc', 'x')],
  "another engine's socket": ['list', join(dataDir, 'run', 'wkr_other-1')],
  'records of launches': ['read', join(dataDir, 'run', 'launches.json')],
  'passwords of the system': ['read', '/etc/shadow'],
  // The cache of the model hub, which engines read, may be in it.
  'the home of the operator': ['run', `ls -A '${homedir()}' | grep -vxF .cache`],
  'folders that only the operator knows': ['run', 'ls -Ad /srv /mnt /media /backup /secrets /data 2>/dev/null; true'],
  'services of the system': ['list', '/run/systemd'],
  'the disk itself': ['run', 'ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem /dev/loop* 2>/dev/null; true'],
  "the server's files by way of its process": ['list', `/proc/${process.pid}/root/`],
  "the server's environment": ['read', `/proc/${process.pid}/environ`],
  'the server, to kill it': ['kill', String(process.pid)],
})

/** Paths with which root would control the machine. Only their write permission is tested: nothing is changed. */
const controls: Record<string, [string, string]> = {
  'controls of the kernel': ['run', '[ -w /proc/sys/kernel/core_pattern ] && echo writable'],
  'the reset of the machine': ['run', '[ -w /proc/sysrq-trigger ] && echo writable'],
  'controls of devices': ['run', '[ -w /sys/kernel/uevent_helper ] && echo writable'],
  'programs of the system': ['run', '[ -w /usr/bin ] && echo writable'],
  'a mount of its own': ['run', 'mount -t tmpfs none /tmp && echo mounted'],
  'a device of its own': ['run', 'mknod /tmp/disk b 8 0 && echo made'],
  'what lies below a mount': ['run', 'umount /proc/sys && echo gone || umount -l /etc/passwd && echo gone'],
  'more from a user namespace': ['run', 'unshare -Urm umount /etc/passwd && echo gone'],
}

describe.each(toolsHere)('with $name', tool => {
  test.each(['strict', 'files'] as const)('at the level %s no attempt on files succeeds', async level => {
    const { folder, dataDir } = dataDirectory()
    const attempts = { ...onFiles(folder, dataDir), ...controls }
    const results = await tried(attempts, { tool, dataDir, level })
    const reached = Object.entries(results).filter(([, result]) => result.startsWith('done') && result !== 'done')
    expect(reached).toEqual([])
    expect(results['the server, to kill it']).not.toMatch(/^done/)
    // The directory is in /tmp here. An engine has its own /tmp, so its writes do not reach this one.
    for (const name of ['infer.db', 'root-token', 'master-key'])
      expect(readFileSync(join(dataDir, name), 'utf8')).toBe('secret')
  })

  test('the network is closed at the level strict, and open at the level files', async () => {
    const { dataDir } = dataDirectory()
    const attempts: Record<string, [string, string]> = { 'the port of the server': ['connect', String(port)] }
    const strict = await tried(attempts, { tool, dataDir, level: 'strict' })
    expect(strict['the port of the server']).toMatch(/ECONNREFUSED|ENETUNREACH/)
    const files = await tried(attempts, { tool, dataDir, level: 'files' })
    expect(files['the port of the server']).toBe('done connected')
  })

  test('allowed access works: its home, a private /tmp, shared memory, its job folders', async () => {
    const { dataDir } = dataDirectory()
    const launchId = `own-${process.pid}`
    writeFileSync(join(dataDir, '..', 'beside'), 'beside')
    const out = join(dataDir, 'work', launchId, 'out')
    const inputs = join(dataDir, 'work', launchId, 'in')
    mkdirSync(inputs, { recursive: true })
    writeFileSync(join(inputs, 'picture.png'), 'picture')
    const results = await tried(
      {
        home: ['create', join(dataDir, 'home', 'fake', 'cache')],
        tmp: ['create', '/tmp/x'],
        'tmp is its own': ['read', join(dataDir, '..', 'beside')],
        'shared memory': ['create', '/dev/shm/x'],
        'no device': ['read', '/dev/null'],
        random: ['run', 'head -c 4 /dev/urandom | wc -c'],
        result: ['create', join(out, 'made.png')],
        input: ['read', join(inputs, 'picture.png')],
        'input, to write': ['overwrite', join(inputs, 'picture.png')],
        'the root folder': ['create', '/x'],
        itself: ['link', '/proc/self/exe'],
      },
      { tool, dataDir, level: 'strict', launchId },
    )
    expect(results).toMatchObject({
      home: 'done',
      tmp: 'done',
      'tmp is its own': 'ENOENT',
      'shared memory': 'done',
      'no device': 'done',
      random: 'done 4',
      result: 'done',
      input: 'done picture',
      'input, to write': 'EROFS',
      'the root folder': 'EROFS',
      itself: `done ${process.execPath}`,
    })
    expect(readFileSync(join(dataDir, 'home', 'fake', 'cache'), 'utf8')).toBe('x')
    expect(readFileSync(join(out, 'made.png'), 'utf8')).toBe('x')
  })

  test('configured paths are readable or writable, and no secret is visible with them', async () => {
    const { folder, dataDir } = dataDirectory()
    mkdirSync(join(folder, 'written'))
    writeFileSync(join(folder, 'beside'), 'beside')
    chmodSync(folder, 0o755)
    const results = await tried(
      {
        beside: ['read', join(folder, 'beside')],
        'beside, to write': ['overwrite', join(folder, 'beside')],
        written: ['create', join(folder, 'written', 'x')],
        'the root token': ['read', join(dataDir, 'root-token')],
        'the root token by another name': ['read', join(folder, 'alias', 'root-token')],
        'an explicit secret': ['read', join(dataDir, 'infer.db')],
        'the root token, to write': ['overwrite', join(dataDir, 'root-token')],
      },
      { tool, dataDir, level: 'strict', read: [folder, join(dataDir)], write: [join(folder, 'written')] },
    )
    expect(results).toEqual({
      beside: 'done beside',
      'beside, to write': 'EROFS',
      written: 'done',
      'the root token': 'ENOENT',
      'the root token by another name': 'ENOENT',
      'an explicit secret': 'ENOENT',
      'the root token, to write': 'EROFS',
    })
  })
})

test('without a sandbox the same attempts succeed, which shows that they are effective', async () => {
  const { folder, dataDir } = dataDirectory()
  const results = await tried(
    { ...onFiles(folder, dataDir), 'the port of the server': ['connect', String(port)] },
    { tool: null, dataDir, level: 'none' },
  )
  for (const name of ['the database', 'the database, to write', 'the root token', 'the port of the server'])
    expect(results[name], name).toMatch(/^done/)
})
