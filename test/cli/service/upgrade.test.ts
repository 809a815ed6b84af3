import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isBoundToUnit } from '../../../cli/service/notify.ts'
import { unitOf } from '../../../cli/service/unit.ts'
import { readUnit, replaceExecutable } from '../../../cli/service/upgrade.ts'
import { temporaryFolder } from '../_infer.ts'

function program(path: string, script: string): string {
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return path
}

test('the unit that install writes says what it runs, whatever its names contain', () => {
  const command = ['/opt/a b/$infer%', 'serve', '--listen', '127.0.0.1:9000']
  const unit = unitOf({ scope: 'user', command, dataDir: '/data/with "quotes"', user: undefined, stopSeconds: 90 })
  expect(readUnit(unit)).toEqual({
    program: ['/opt/a b/$infer%'],
    dataDir: '/data/with "quotes"',
    isPackaged: false,
  })
})

const command = ['/usr/bin/infer', 'serve']
const packaged = `# /usr/lib/systemd/system/infer.service
${unitOf({ scope: 'system', command, dataDir: '/var/lib/infer', user: 'infer', stopSeconds: 90 })}`

test.each([
  ['', { program: ['/usr/bin/infer'], dataDir: '/var/lib/infer', isPackaged: true }],
  [
    'ExecStart=\nExecStart=/opt/infer serve --listen 0.0.0.0:8787\nEnvironment=A=1 INFER_DATA_DIR=/srv/infer',
    { program: ['/opt/infer'], dataDir: '/srv/infer', isPackaged: false },
  ],
])('the unit of the Debian package, with the changes %j of systemctl edit', (changes, server) => {
  expect(readUnit(`${packaged}\n# /etc/systemd/system/infer.service.d/override.conf\n[Service]\n${changes}\n`)).toEqual(
    server,
  )
})

test('the unit of another program is refused', () => {
  expect(() => readUnit('# /etc/systemd/system/infer.service\n[Service]\nExecStart=/usr/bin/other\n')).toThrow(
    '/etc/systemd/system/infer.service does not run infer serve',
  )
})

test('an executable is replaced in one step, and can be put back', () => {
  const folder = temporaryFolder()
  const target = program(join(folder, 'infer'), 'echo 1.0.0')
  const { previous, undo } = replaceExecutable(program(join(folder, 'next'), 'echo 2.0.0'), target)
  expect(readFileSync(target, 'utf8')).toContain('2.0.0')
  expect(readFileSync(previous, 'utf8')).toContain('1.0.0')
  undo()
  expect(readFileSync(target, 'utf8')).toContain('1.0.0')
})

test.each([
  ['does not run', 'exit 1'],
  ['is not infer', 'echo hello'],
])('a program that %s replaces nothing', (message, script) => {
  const folder = temporaryFolder()
  const target = program(join(folder, 'infer'), 'echo 1.0.0')
  expect(() => replaceExecutable(program(join(folder, 'next'), script), target)).toThrow(message)
  expect(readFileSync(target, 'utf8')).toContain('1.0.0')
})

test.each([
  ['a service whose unit is older', { SYSTEMD_EXEC_PID: '42' }, true],
  ['a service that another process may lead', { SYSTEMD_EXEC_PID: '42', NOTIFY_SOCKET: '/run/notify' }, false],
  ['a process that another one of the service started', { SYSTEMD_EXEC_PID: '41' }, false],
  ['a process outside a service', {}, false],
])('%s, with %o, is bound to its unit: %s', (_, environment, bound) => {
  expect(isBoundToUnit(environment, 42)).toBe(bound)
})
