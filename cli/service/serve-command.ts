import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { packaged } from '../../core/assets.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import type { UnitScope } from './unit.ts'

export interface ServeFlags {
  config?: string
  listen?: string
  drainTimeout?: string
}

/** Returns program and arguments of `infer serve` for the way this program was started, with absolute paths. */
export function serveCommand({ config, listen, drainTimeout }: ServeFlags, scope: UnitScope): string[] {
  const configPath = config === undefined ? undefined : resolve(config)
  if (configPath !== undefined && !existsSync(configPath))
    throw usageFailure(`There is no configuration ${configPath}.`)
  const program = packaged
    ? [realpathSync(process.execPath)]
    : [realpathSync(process.execPath), ...process.execArgv, realpathSync(process.argv[1] ?? '')]
  if (scope === 'system')
    for (const path of [
      ...program.filter(part => part.startsWith('/')),
      ...(configPath === undefined ? [] : [configPath]),
    ])
      if (/^\/(home|root|run\/user|tmp|var\/tmp)\//.test(path))
        throw usageFailure(
          `A system service cannot read ${path}, because systemd hides home and temporary folders from it. Move the file, for example to /usr/local/bin or /etc, or install a user service with --user.`,
        )
  return [
    ...program,
    'serve',
    ...(configPath === undefined ? [] : ['--config', configPath]),
    ...(listen === undefined ? [] : ['--listen', listen]),
    ...(drainTimeout === undefined ? [] : ['--drain-timeout', drainTimeout]),
  ]
}
