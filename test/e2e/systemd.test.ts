import { once } from 'node:events'
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeDeb } from '../../bin/deb.ts'
import { until } from '../gpu/launcher/_launch.ts'
import { openSystemdMachine, type SystemdMachine } from './_systemd-machine.ts'

const opened = await openSystemdMachine()
const reason = typeof opened === 'string' ? opened : undefined
const { run, succeed, pathOf, startBeside } = opened as SystemdMachine

beforeAll(() => {
  if (!existsSync('build/infer')) throw new Error('build/infer is missing. Run: npm run pack')
})
afterAll(async () => {
  if (typeof opened !== 'string') await opened[Symbol.asyncDispose]()
})

const infer = (...args: string[]) => succeed('infer', ...args, '--data-dir', '/var/lib/infer')
/** What systemd says of the service: `pid` of its main process, how often it restarted it, its state. */
function service() {
  const properties = ['MainPID', 'NRestarts', 'ActiveState']
  const shown = succeed('systemctl', 'show', 'infer', `--property=${properties.join(',')}`)
  const [pid, restarts, state] = properties.map(name => new RegExp(`^${name}=(.*)$`, 'm').exec(shown)![1]!)
  return { pid: Number(pid), restarts: Number(restarts), state }
}
const answer = () => infer('run', 'infer/tiny-chat', 'Hello')
const engines = () =>
  (JSON.parse(infer('ps', '--json')) as { engines: { pid: number }[] }).engines.map(({ pid }) => pid)
/** Command lines of running processes that have to do with infer. */
const processes = () => run('grep', '-lsa', '[i]nfer', '-r', '/proc', '--include=cmdline', '--exclude-dir=task').out
/** Without the executable, and without what programs for users and packages write for themselves. */
const files = () =>
  succeed('find', '/etc', '/root', '/usr', '-xdev', '!', '-path', '/usr/*bin/infer', '!', '-path', '/etc/*-')
    .split('\n')
    .sort()

describe.skipIf(reason)(`a service under systemd${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let before: string[]

  test('systemctl start ends when the server answers', () => {
    before = files()
    copyFileSync('build/infer', pathOf('/usr/local/bin/infer'))
    succeed('infer', 'service', 'install')
    succeed('systemctl', 'start', 'infer')
    expect(answer()).toContain('Hello!')
    expect(service()).toMatchObject({ restarts: 0, state: 'active' })
    expect(processes()).not.toBe('')
  })

  test('an upgrade changes the main process and keeps the engine', () => {
    const loaded = engines()
    const { pid: previous_pid } = service()
    const { pid } = JSON.parse(succeed('infer', 'service', 'upgrade', '--json')) as { pid: number }
    expect(pid).not.toBe(previous_pid)
    expect(service()).toEqual({ pid, restarts: 0, state: 'active' })
    expect(engines()).toEqual(loaded)
  })

  test('a killed server is restarted and takes over the engine', async () => {
    const loaded = engines()
    const { pid } = service()
    succeed('systemctl', 'kill', '--signal=KILL', '--kill-whom=main', 'infer')
    await until(() => service().pid !== pid && service().state === 'active')
    expect(service()).toMatchObject({ restarts: 1 })
    await until(() => engines().length > 0)
    expect(engines()).toEqual(loaded)
    expect(answer()).toContain('Hello!')
  })

  test('stop ends all processes', () => {
    succeed('systemctl', 'stop', 'infer')
    expect(service()).toMatchObject({ pid: 0, state: 'inactive' })
    expect(processes()).toBe('')
  })

  test('a configuration with a mistake fails the start, and the status says where', () => {
    const path = pathOf('/var/lib/infer/infer.yaml')
    writeFileSync(path, 'models: nonsense\n')
    expect(run('systemctl', 'start', 'infer').code).toBe(1)
    expect(service()).toMatchObject({ restarts: 0, state: 'failed' })
    expect(run('systemctl', 'status', 'infer').out).toContain('infer.yaml:1:')
    rmSync(path)
    succeed('systemctl', 'start', 'infer')
  })

  test('uninstall ends all processes and leaves only the data', () => {
    succeed('infer', 'service', 'uninstall')
    expect(processes()).toBe('')
    expect(files()).toEqual(before)
    expect(run('systemctl', 'show', 'infer', '--property=LoadState', '--value').out).toBe('not-found')
    expect(existsSync(pathOf('/var/lib/private/infer/infer.db'))).toBe(true)
  })
})

/** Sends one request after the other, each on a new connection, until its input ends. Then prints what happened. */
const client = `
const failures = []
let answered = 0
let isOver = false
const headers = { authorization: 'Bearer ' + process.argv[1], connection: 'close' }
process.stdin.resume().on('end', () => (isOver = true))
while (!isOver)
  try {
    const answer = await fetch('http://127.0.0.1:8787/std/v1/models', { headers })
    await answer.text()
    if (answer.ok) answered++
    else failures.push(answer.status)
    if (answered === 1) console.log('')
  } catch (thrown) {
    failures.push(String(thrown.cause ?? thrown))
  }
console.log(JSON.stringify({ answered, failures }))`

describe.skipIf(reason)(`the Debian package under systemd${reason ? ` (skipped: ${reason})` : ''}`, () => {
  const debOf = (version: string) => `/srv/infer_${version}_amd64.deb`
  const apt = (version: string, ...more: string[]) =>
    run('apt-get', 'install', '--yes', '--no-install-recommends', ...more, debOf(version))
  /** The executable of the main process; of one that was replaced it ends with `(deleted)`. */
  const program = () => succeed('readlink', `/proc/${service().pid}/exe`)

  let before: string[]
  beforeAll(() => {
    for (const version of ['1.0.0', '1.1.0'])
      writeDeb({
        architecture: 'x64',
        version,
        executable: 'build/infer',
        output: pathOf(debOf(version)),
        compression: 0,
      })
    succeed('rm', '-r', '/usr/local/bin/infer', '/var/lib/infer', '/var/lib/private/infer')
    before = files()
    expect(apt('1.0.0')).toMatchObject({ code: 0 })
    succeed('systemctl', 'start', 'infer')
  })

  test('no request fails while apt installs a new version', async () => {
    const { pid } = service()
    const token = succeed('cat', '/var/lib/infer/root-token')
    const requests = startBeside([process.execPath, '--input-type=module', '--eval', client, token])
    await once(requests.stdout, 'data')
    const { code, out } = apt('1.1.0')
    requests.stdin.end()
    const { answered, failures } = JSON.parse(await text(requests.stdout))
    expect(failures).toEqual([])
    expect(answered).toBeGreaterThan(10)
    expect([code, out]).toEqual([0, expect.stringContaining('The new server serves')])
    expect(service()).toMatchObject({ restarts: 0, state: 'active' })
    expect(service().pid).not.toBe(pid)
    expect(program()).toBe('/usr/bin/infer')
    expect(answer()).toContain('Hello!')
  })

  test('infer service upgrade works on its unit, and does not replace its executable', () => {
    const { pid } = service()
    succeed('infer', 'service', 'upgrade')
    expect(service().pid).not.toBe(pid)
    expect(run('infer', 'service', 'upgrade', '--executable', '/usr/bin/infer')).toMatchObject({
      code: 64,
      err: expect.stringContaining('Install the new package'),
    })
    expect(run('infer', 'service', 'install')).toMatchObject({
      code: 1,
      err: expect.stringContaining('systemctl edit infer'),
    })
  })

  test('the old version goes on if the new one cannot start', () => {
    const { pid } = service()
    writeFileSync(pathOf('/var/lib/infer/infer.yaml'), 'models: nonsense\n')
    const { code, err } = apt('1.1.0', '--reinstall')
    expect([code, err]).toEqual([0, expect.stringMatching(/infer\.yaml:1:.*journalctl --unit infer/s)])
    expect(service()).toEqual({ pid, restarts: 0, state: 'active' })
    rmSync(pathOf('/var/lib/infer/infer.yaml'))
  })

  test('a version that cannot hand over is restarted', () => {
    const { pid } = service()
    succeed('rm', `/var/lib/infer/run/control-${pid}`)
    expect(apt('1.1.0', '--reinstall')).toMatchObject({ code: 0 })
    expect(service().pid).not.toBe(pid)
    expect(service()).toMatchObject({ restarts: 0, state: 'active' })
    expect(program()).toBe('/usr/bin/infer')
  })

  test('a purge ends all processes', () => {
    succeed('apt-get', 'purge', '--yes', 'infer')
    expect(processes()).toBe('')
    expect(files()).toEqual(before)
    expect(run('systemctl', 'show', 'infer', '--property=LoadState', '--value').out).toBe('not-found')
  })
})
