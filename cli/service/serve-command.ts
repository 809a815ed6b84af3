import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { packaged } from '../../core/assets.ts'
import { usage } from '../exit-codes.ts'
import type { Scope } from './unit.ts'

export interface ServeFlags {
  config?: string
  listen?: string
  drainTimeout?: string
}

/** Program and arguments of `infer serve`, as this program was started, with every path in full. */
export function serveCommand({ config, listen, drainTimeout }: ServeFlags, scope: Scope): string[] {
  const configPath = config === undefined ? undefined : resolve(config)
  if (configPath !== undefined && !existsSync(configPath)) throw usage(`There is no configuration ${configPath}.`)
  const program = packaged
    ? [realpathSync(process.execPath)]
    : [realpathSync(process.execPath), ...process.execArgv, realpathSync(process.argv[1] ?? '')]
  if (scope === 'system')
    for (const path of [
      ...program.filter(part => part.startsWith('/')),
      ...(configPath === undefined ? [] : [configPath]),
    ])
      if (/^\/(home|root|run\/user|tmp|var\/tmp)\//.test(path))
        throw usage(
          `The service of the machine cannot see ${path}, because home and temporary folders are hidden from it. Put it elsewhere, such as /usr/local/bin or /etc, or install for yourself with --user.`,
        )
  return [
    ...program,
    'serve',
    ...(configPath === undefined ? [] : ['--config', configPath]),
    ...(listen === undefined ? [] : ['--listen', listen]),
    ...(drainTimeout === undefined ? [] : ['--drain-timeout', drainTimeout]),
  ]
}
