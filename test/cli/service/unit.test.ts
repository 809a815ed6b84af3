import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemDataDir, type UnitFacts, unitOf } from '../../../cli/service/unit.ts'
import { temporaryFolder } from '../_infer.ts'

const facts: UnitFacts = {
  scope: 'system',
  command: ['/usr/local/bin/infer', 'serve', '--drain-timeout', '60s'],
  dataDir: systemDataDir,
  user: undefined,
  stopSeconds: 90,
}
const linesOf = (unit: string) => unit.split('\n')
const user: UnitFacts = { ...facts, scope: 'user', dataDir: '/home/me/.local/share/infer' }

test('the system service has the settings that the guarantees need', () => {
  const lines = linesOf(unitOf(facts))
  for (const line of [
    // `systemctl start` ends when the server answers, and fails when it cannot start.
    'Type=notify',
    'NotifyAccess=all',
    'ExecStart=/usr/local/bin/infer serve --drain-timeout 60s',
    'NoNewPrivileges=yes',
    'ProtectSystem=strict',
    'ReadWritePaths=/var/lib/infer',
    'PrivateTmp=yes',
    'ProtectHome=yes',
    'ProtectKernelTunables=yes',
    'ProtectKernelModules=yes',
    'ProtectKernelLogs=yes',
    'RestrictSUIDSGID=yes',
    'LockPersonality=yes',
    'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
    'SystemCallFilter=@system-service @mount',
    'LimitCORE=0',
    // A crash must leave the engines to the next start.
    'KillMode=process',
    'DevicePolicy=closed',
    'DeviceAllow=char-nvidia* rw',
    'WantedBy=multi-user.target',
  ])
    expect(lines).toContain(line)
  for (const name of ['TasksMax=', 'MemoryHigh=']) expect(lines.some(line => line.startsWith(name))).toBe(true)
  // V8 compiles at run time, and engines run in their own process namespace.
  expect(unitOf(facts)).not.toMatch(/MemoryDenyWriteExecute|RestrictNamespaces/)
})

test('it runs as its own user or the named one, and never as root', () => {
  expect(linesOf(unitOf(facts))).toEqual(expect.arrayContaining(['DynamicUser=yes', 'StateDirectory=infer']))
  const named = linesOf(unitOf({ ...facts, user: 'ai', dataDir: '/srv/ai' }))
  expect(named).toEqual(
    expect.arrayContaining(['User=ai', 'ReadWritePaths=/srv/ai', 'Environment=INFER_DATA_DIR=/srv/ai']),
  )
  expect(named).not.toContain('DynamicUser=yes')
  expect(named).not.toContain('StateDirectory=infer')
})

test('engines run until the server has drained: the stop waits for the server', async () => {
  const lines = linesOf(unitOf(facts))
  expect(lines).toContain('TimeoutStopSec=90')
  const [stop, ...more] = lines.filter(line => line.startsWith('ExecStop='))
  expect(more).toEqual([])
  const script = /^ExecStop=-\/bin\/sh -c "(.*)"$/.exec(stop!)![1]!
  // For a server that stops slowly after SIGTERM, the stop ends when the server has exited, not earlier.
  const server = spawn('sh', ['-c', 'trap "sleep 0.5; exit 0" TERM; echo up; while :; do sleep 0.05; done'])
  await once(server.stdout, 'data')
  let over = false
  server.once('exit', () => (over = true))
  const stopping = spawn('sh', ['-c', script.replaceAll('${MAINPID}', String(server.pid))])
  onTestFinished(() => void stopping.kill('SIGKILL'))
  await once(stopping, 'exit')
  expect(over).toBe(true)
})

test('systemctl reload sends SIGHUP to the server, which reads configuration and certificate again', async () => {
  const [reload, ...more] = linesOf(unitOf(facts)).filter(line => line.startsWith('ExecReload='))
  expect(more).toEqual([])
  const script = /^ExecReload=\/bin\/sh -c "(.*)"$/.exec(reload ?? '')![1]!
  const server = spawn('sh', ['-c', 'trap "echo again; exit 0" HUP; echo up; while :; do sleep 0.05; done'])
  onTestFinished(() => void server.kill('SIGKILL'))
  await once(server.stdout, 'data')
  const heard = once(server.stdout, 'data')
  spawn('sh', ['-c', script.replaceAll('${MAINPID}', String(server.pid))])
  expect(String(await heard)).toBe('again\n')
})

test('the service of a user needs no setting that only the system service may have', () => {
  const unit = unitOf(user)
  expect(unit).toContain('WantedBy=default.target')
  expect(unit).not.toMatch(/User=|ProtectSystem|DevicePolicy|CapabilityBoundingSet|network-online/)
  expect(linesOf(unit)).toContain('NoNewPrivileges=yes')
})

test.each([
  ['/opt/my infer/infer', '"/opt/my infer/infer"'],
  ['/opt/100%/infer', '/opt/100%%/infer'],
  ['/opt/$HOME/infer', '/opt/$$HOME/infer'],
  ['/opt/"a"/infer', '"/opt/\\"a\\"/infer"'],
])('%s is written as %s', (path, written) => {
  expect(linesOf(unitOf({ ...facts, command: [path, 'serve'] }))).toContain(`ExecStart=${written} serve`)
})

test('a dollar sign is literal everywhere except in a command', () => {
  const unit = linesOf(unitOf({ ...facts, dataDir: '/srv/$AI', user: 'ai' }))
  expect(unit).toContain('Environment=INFER_DATA_DIR=/srv/$AI')
  expect(unit).toContain('ReadWritePaths=/srv/$AI')
})

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0
describe.skipIf(!hasAnalyze)('systemd-analyze', () => {
  test.each<[string, UnitFacts]>([
    ['the machine', facts],
    ['a named user', { ...facts, user: 'root', dataDir: '/srv/ai' }],
    ['a user', user],
  ])('finds nothing wrong with the unit of %s', (_, of) => {
    const folder = temporaryFolder()
    mkdirSync(folder, { recursive: true })
    const path = join(folder, 'infer.service')
    writeFileSync(path, unitOf({ ...of, command: ['/bin/true', 'serve'] }))
    const scope = of.scope === 'user' ? ['--user'] : []
    const { status, stderr } = spawnSync('systemd-analyze', [...scope, 'verify', path], {
      encoding: 'utf8',
      env: { ...process.env, XDG_RUNTIME_DIR: folder },
    })
    expect({ status, complaints: stderr.split('\n').filter(line => line.includes('infer.service')) }).toEqual({
      status: 0,
      complaints: [],
    })
  })
})
