import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { baseDirectory } from '../../core/base-directory.ts'
import { refused } from '../terminal/exit-codes.ts'
import { packagedUnitPath, type UnitScope } from './unit.ts'

/** Returns the path of the unit. */
export const unitPathOf = (scope: UnitScope, environment: Record<string, string | undefined>): string =>
  scope === 'system'
    ? '/etc/systemd/system/infer.service'
    : join(baseDirectory('XDG_CONFIG_HOME', environment), 'systemd/user/infer.service')

/**
 * Opens systemd. Its functions throw Failure `conflict` if this machine was not booted with systemd (the folder `booted`
 * is missing), and `insufficient_scope` if the caller may not write the unit.
 */
export function openSystemd({
  scope,
  environment,
  booted = '/run/systemd/system',
  unitPath = unitPathOf(scope, environment),
  packagedPath = packagedUnitPath,
}: {
  scope: UnitScope
  environment: Record<string, string | undefined>
  booted?: string
  unitPath?: string
  packagedPath?: string
}) {
  function requireBooted(): void {
    if (!existsSync(booted))
      throw refused(
        'conflict',
        'systemd does not run here, as in most containers. Run infer serve with the service manager of this machine; infer service install --print shows the unit.',
      )
  }

  /** Throws where there is no unit but that of the Debian package. */
  function requireNoPackage(advice: string): void {
    if (scope === 'system' && !existsSync(unitPath) && existsSync(packagedPath))
      throw refused('conflict', `The Debian package has installed ${packagedPath}. ${advice}`)
  }

  const ask = (args: readonly string[]) =>
    spawnSync('systemctl', [...(scope === 'user' ? ['--user'] : []), ...args], { encoding: 'utf8', env: environment })

  function systemctl(...args: string[]): void {
    const { status, error, stderr } = ask(args)
    if (status === 0) return
    const why = error?.message ?? (stderr.trim().split('\n').at(-1) || `it ended with ${status}`)
    throw refused('conflict', `systemctl ${args.join(' ')} failed: ${why}`)
  }

  function mayWrite<T>(work: () => T): T {
    try {
      return work()
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (scope !== 'system' || (code !== 'EACCES' && code !== 'EPERM')) throw cause
      throw refused(
        'insufficient_scope',
        `Only root can write ${unitPath}. Run this with sudo, or install a user service: infer service install --user`,
        { cause },
      )
    }
  }

  return {
    unitPath,
    /** Writes the unit and makes systemd read it. Returns whether the unit existed and differed. */
    put(unit: string): 'new' | 'changed' | 'same' {
      requireBooted()
      requireNoPackage(
        'Change its options with systemctl edit infer, or remove the package first: apt-get remove infer',
      )
      const before = existsSync(unitPath) ? readFileSync(unitPath, 'utf8') : undefined
      if (before === unit) return 'same'
      mayWrite(() => {
        mkdirSync(dirname(unitPath), { recursive: true, mode: 0o755 })
        writeFileSync(`${unitPath}.new`, unit)
        // The unit contains no secrets, and systemd warns about units that others cannot read.
        chmodSync(`${unitPath}.new`, 0o644)
        renameSync(`${unitPath}.new`, unitPath)
      })
      systemctl('daemon-reload')
      return before === undefined ? 'new' : 'changed'
    },
    /** The unit in force with what `systemctl edit` has added, a package's too. Throws Failure `conflict` without one. */
    unit(): string {
      const { status, stdout } = ask(['cat', 'infer.service'])
      if (status === 0) return stdout
      requireBooted()
      throw refused(
        'conflict',
        scope === 'system'
          ? 'systemd knows no infer.service. Run: sudo infer service install'
          : 'systemd knows no infer.service of this user. Run: infer service install --user. For the system service run this with sudo.',
      )
    },
    start: (): void => systemctl('start', 'infer.service'),
    /** Restarts the service if it runs. */
    restart: (): void => systemctl('try-restart', 'infer.service'),
    /** Stops and disables the service and removes its unit. False when there was none. */
    remove(): boolean {
      requireBooted()
      requireNoPackage('Remove it with: apt-get remove infer')
      if (!existsSync(unitPath)) return false
      systemctl('disable', '--now', 'infer.service')
      mayWrite(() => rmSync(unitPath))
      systemctl('daemon-reload')
      return true
    },
  }
}
