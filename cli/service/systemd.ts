import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { refused } from '../exit-codes.ts'
import type { Scope } from './unit.ts'

/** The systemd of this machine, or of this user. */
export interface Systemd {
  scope: Scope
  unitPath: string
  /** Writes the unit and makes systemd read it. Says whether one was there before. */
  put(unit: string): 'new' | 'changed' | 'same'
  /** Stops and disables the service and takes its unit away. False when there was none. */
  remove(): boolean
}

/** Where the unit goes. */
export const unitPathOf = (scope: Scope, environment: Record<string, string | undefined>): string =>
  scope === 'system'
    ? '/etc/systemd/system/infer.service'
    : join(environment.XDG_CONFIG_HOME ?? join(environment.HOME ?? homedir(), '.config'), 'systemd/user/infer.service')

/**
 * Opens systemd. Throws Failure `conflict` where this machine was not booted with it, which is what the folder `booted`
 * says, and `insufficient_scope` where the caller may not write the unit.
 */
export function openSystemd({
  scope,
  environment,
  booted = '/run/systemd/system',
  unitPath = unitPathOf(scope, environment),
}: {
  scope: Scope
  environment: Record<string, string | undefined>
  booted?: string
  unitPath?: string
}): Systemd {
  if (!existsSync(booted))
    throw refused(
      'conflict',
      'systemd does not run here, as in most containers. Run infer serve under what starts programs on this machine; infer service install --print shows the unit.',
    )

  function systemctl(...args: string[]): void {
    const { status, error, stderr } = spawnSync('systemctl', [...(scope === 'user' ? ['--user'] : []), ...args], {
      encoding: 'utf8',
      env: environment,
    })
    if (status === 0) return
    const why = error?.message ?? (stderr.trim().split('\n').at(-1) || `it ended with ${status}`)
    throw refused('conflict', `systemctl ${args.join(' ')} did not work: ${why}`)
  }

  function mayWrite<T>(work: () => T): T {
    try {
      return work()
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      if (scope !== 'system' || (code !== 'EACCES' && code !== 'EPERM')) throw cause
      throw refused(
        'insufficient_scope',
        `${unitPath} can be written by root only. Run this with sudo, or install for yourself: infer service install --user`,
        { cause },
      )
    }
  }

  return {
    scope,
    unitPath,
    put(unit) {
      const before = existsSync(unitPath) ? readFileSync(unitPath, 'utf8') : undefined
      if (before === unit) return 'same'
      mayWrite(() => {
        mkdirSync(dirname(unitPath), { recursive: true, mode: 0o755 })
        writeFileSync(`${unitPath}.new`, unit)
        // Nothing in it is secret, and systemd complains of one that others cannot read.
        chmodSync(`${unitPath}.new`, 0o644)
        renameSync(`${unitPath}.new`, unitPath)
      })
      systemctl('daemon-reload')
      return before === undefined ? 'new' : 'changed'
    },
    remove() {
      if (!existsSync(unitPath)) return false
      systemctl('disable', '--now', 'infer.service')
      mayWrite(() => rmSync(unitPath))
      systemctl('daemon-reload')
      return true
    },
  }
}
