import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { localDirectory } from '../client/find-server.ts'
import { findEngines } from '../models/engine-programs.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, environmentKinds } from './environment-kinds.ts'

/** `infer engine list`: the backends for GPUs, the Python environments, and the engines that are installed. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .summary('list backends for GPUs, environments of Python libraries, and installed engines')
    .description(
      'Lists the backends for GPUs of the built-in engine and the Python environments of the data directory, with their state and size, and the engines whose programs are in them or on the PATH.',
    )
    .action(async ({ dataDir, json }) => {
      const folder = environmentsFolder(localDirectory(command, dataDir))
      const { installedBackends } = await import('./installed-backends.ts')
      const backends = await installedBackends(localDirectory(command, dataDir), terminal.environment)
      const { folderBytes } = await import('./install-environment.ts')
      const names = existsSync(folder)
        ? readdirSync(folder, { withFileTypes: true })
            .filter(entry => entry.isDirectory())
            .map(({ name }) => name)
            .toSorted()
        : []
      const rows = await Promise.all(
        names.map(async name => ({
          name,
          state: await stateOf(join(folder, name), name),
          bytes: await folderBytes(join(folder, name)),
          path: join(folder, name),
        })),
      )
      const engines = findEngines({ dataDir: localDirectory(command, dataDir), path: terminal.environment.PATH ?? '' })
      if (json)
        return terminal.json({
          backends,
          environments: rows,
          engines: engines.map(({ engine, path = null }) => ({ engine, path })),
        })
      if (rows.length === 0) terminal.remark('There are no environments. Make one with: infer engine setup speech')
      const all = [...backends.map(one => ({ ...one, name: `gpu (${one.name})` })), ...rows]
      if (all.length > 0)
        terminal.table(
          ['NAME', 'STATE', 'SIZE', 'PATH'],
          all.map(({ name, state, bytes, path }) => [name, state, sizeText(bytes), path]),
        )
      terminal.print('')
      terminal.table(
        ['ENGINE', 'PROGRAM'],
        [['gguf', 'built in'], ...engines.map(({ engine, path }) => [engine, path ?? 'not installed'])],
      )
    })
  withExamples(command, [['infer engine list', 'what is installed, and whether it is complete']])
}

/** `outdated`: made for other versions of the libraries than this infer was tested with. */
async function stateOf(folder: string, name: string): Promise<'complete' | 'outdated' | 'incomplete' | 'own'> {
  const kind = (environmentKinds as Record<string, EnvironmentKind>)[name]
  if (!kind) return 'own'
  const { isComplete, requirementsHash } = await import('./install-environment.ts')
  if (!isComplete(folder, {})) return 'incomplete'
  return isComplete(folder, { requirements: requirementsHash(kind) }) ? 'complete' : 'outdated'
}
