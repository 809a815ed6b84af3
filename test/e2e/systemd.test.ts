import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../gpu/launcher/_launch.ts'
import { openSystemdMachine, type SystemdMachine } from './_systemd-machine.ts'

const opened = await openSystemdMachine()
const reason = typeof opened === 'string' ? opened : undefined
const { run, succeed, pathOf } = opened as SystemdMachine

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
const files = () => succeed('find', '/etc', '/usr', '-xdev', '!', '-name', 'infer')

describe.skipIf(reason)(`a service under systemd${reason ? ` (skipped: ${reason})` : ''}`, () => {
  let before: string

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
    expect(files()).toBe(before)
    expect(run('systemctl', 'show', 'infer', '--property=LoadState', '--value').out).toBe('not-found')
    expect(existsSync(pathOf('/var/lib/private/infer/infer.db'))).toBe(true)
  })
})
