import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSystemd, unitPathOf } from '../../../cli/service/systemd.ts'
import { temporaryFolder } from '../_infer.ts'

/** A fake of a machine with systemd: `systemctl` records its arguments. */
function machine({ refuses = '' } = {}) {
  const folder = temporaryFolder()
  const asked = join(folder, 'asked')
  const script = join(folder, 'systemctl')
  writeFileSync(asked, '')
  writeFileSync(
    script,
    `#!/bin/sh\necho "$@" >> ${asked}\ncase "$*" in *"${refuses || 'nothing is refused'}"*) echo 'Failed: no bus' >&2; exit 1;; esac\n`,
  )
  chmodSync(script, 0o755)
  mkdirSync(join(folder, 'booted'))
  const environment = { PATH: `${folder}:/usr/bin:/bin`, HOME: folder }
  return {
    folder,
    asked: () =>
      readFileSync(asked, 'utf8')
        .trim()
        .split('\n')
        .filter(line => line !== ''),
    script,
    open: () => openSystemd({ scope: 'user', environment, booted: join(folder, 'booted') }),
    /** For the system, with these paths of its unit and that of the Debian package. */
    openSystem: () =>
      openSystemd({
        scope: 'system',
        environment,
        booted: join(folder, 'booted'),
        unitPath: join(folder, 'own'),
        packagedPath: join(folder, 'packaged'),
      }),
  }
}

test('the unit is readable by everybody, as systemd requires, although other files of infer are private', () => {
  const before = process.umask(0o077)
  onTestFinished(() => void process.umask(before))
  const systemd = machine().open()
  systemd.put('one')
  expect(statSync(systemd.unitPath).mode & 0o777).toBe(0o644)
})

test('a unit is written, then changed, then unchanged; systemd reloads it when it changes', () => {
  const { open, asked, folder } = machine()
  const systemd = open()
  expect(systemd.unitPath).toBe(join(folder, '.config/systemd/user/infer.service'))
  expect(systemd.put('one')).toBe('new')
  expect(systemd.put('two')).toBe('changed')
  expect(systemd.put('two')).toBe('same')
  expect(readFileSync(systemd.unitPath, 'utf8')).toBe('two')
  expect(asked()).toEqual(['--user daemon-reload', '--user daemon-reload'])
})

test('the service is stopped and disabled before the unit is removed; a missing unit is not removed', () => {
  const { open, asked } = machine()
  const systemd = open()
  expect(systemd.remove()).toBe(false)
  systemd.put('one')
  expect(systemd.remove()).toBe(true)
  expect(existsSync(systemd.unitPath)).toBe(false)
  expect(asked().slice(1)).toEqual(['--user disable --now infer.service', '--user daemon-reload'])
})

test('the unit in force is what systemd says, and a missing one is refused', () => {
  const { open, script } = machine({ refuses: 'cat' })
  expect(() => open().unit()).toThrow('infer service install')
  writeFileSync(script, '#!/bin/sh\necho "# /lib/systemd/system/infer.service for $*"\n')
  expect(open().unit()).toBe('# /lib/systemd/system/infer.service for --user cat infer.service\n')
})

test('no unit is written beside that of the Debian package, which uninstall leaves to apt', () => {
  const { openSystem, folder, asked } = machine()
  const systemd = openSystem()
  writeFileSync(join(folder, 'packaged'), 'of the package')
  expect(() => systemd.put('one')).toThrow('systemctl edit infer')
  expect(() => systemd.remove()).toThrow('apt-get remove infer')
  // Of a machine on which the service was installed before the package.
  writeFileSync(systemd.unitPath, 'zero')
  expect(systemd.put('one')).toBe('changed')
  expect(systemd.remove()).toBe(true)
  expect(asked().filter(line => line !== 'daemon-reload')).toEqual(['disable --now infer.service'])
})

test('when systemd cannot stop it, the unit is kept and the message of systemd is printed', () => {
  const { open } = machine({ refuses: 'disable' })
  const systemd = open()
  systemd.put('one')
  expect(() => systemd.remove()).toThrow('systemctl disable --now infer.service failed: Failed: no bus')
  expect(existsSync(systemd.unitPath)).toBe(true)
})

test('on a machine that was not booted with systemd the message says what to do instead', () => {
  const systemd = openSystemd({ scope: 'user', environment: {}, booted: '/nowhere' })
  for (const use of [() => systemd.put('one'), () => systemd.unit(), () => systemd.remove()])
    expect(use).toThrow('systemd does not run here')
})

test.each([
  ['system', {}, '/etc/systemd/system/infer.service'],
  ['user', { HOME: '/home/me' }, '/home/me/.config/systemd/user/infer.service'],
  ['user', { HOME: '/home/me', XDG_CONFIG_HOME: '/cfg' }, '/cfg/systemd/user/infer.service'],
] as const)('the unit of the %s with %j is %s', (scope, environment, path) =>
  expect(unitPathOf(scope, environment)).toBe(path),
)
