import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { optionalNames } from '../../core/optional-file.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { localDirectory } from '../client/find-server.ts'
import { findEngines } from '../models/engine-programs.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type EnvironmentKind, environmentKinds } from './environment-kinds.ts'
import { releaseKinds } from './releases/release-kinds.ts'

/** `infer engine list`: the backends for GPUs, installed releases, Python environments, and where engines are found. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .summary('list backends for GPUs, installed releases, Python environments and engines')
    .description(
      'Lists the backends for GPUs of the built-in engine, the installed releases of llama-server and sd-server and the Python environments of the data directory, with their state and size, and the engines whose programs are in them or on the PATH. Asks no server: see infer engine update --check.',
    )
    .action(async ({ dataDir, json }) => {
      const folder = environmentsFolder(localDirectory(command, dataDir))
      const { installedBackends } = await import('./installed-backends.ts')
      const backends = await installedBackends(localDirectory(command, dataDir), terminal.environment)
      const { folderBytes } = await import('./install-environment.ts')
      const releases = await releasesIn(localDirectory(command, dataDir))
      const names = existsSync(folder)
        ? readdirSync(folder, { withFileTypes: true })
            .filter(entry => entry.isDirectory() && !isOfReleases(join(folder, entry.name), entry.name))
            .map(({ name }) => name)
            .toSorted()
        : []
      const rows = await Promise.all(
        names.map(async name => ({
          name,
          state: await stateOf(join(folder, name), name),
          versions: await versionsIn(join(folder, name), name),
          bytes: await folderBytes(join(folder, name)),
          path: join(folder, name),
        })),
      )
      const engines = findEngines({ dataDir: localDirectory(command, dataDir), path: terminal.environment.PATH ?? '' })
      if (json)
        return terminal.json({
          backends,
          releases,
          environments: rows,
          engines: engines.map(({ engine, path = null }) => ({ engine, path })),
        })
      if (rows.length + releases.length === 0)
        terminal.remark('There are no environments. Make one with: infer engine setup speech')
      const all = [
        ...backends.map(one => ({ ...one, name: `gpu (${one.name})` })),
        ...releases.map(({ engine, backend, is_current, ...release }) => ({
          ...release,
          name: `${engine} (${backend})`,
          state: is_current ? 'current' : 'beside',
        })),
        ...rows.map(({ versions, ...row }) => ({ ...row, version: versionsText(versions) })),
      ]
      if (all.length > 0)
        terminal.table(
          ['NAME', 'VERSION', 'STATE', 'SIZE', 'PATH'],
          all.map(({ name, version, state, bytes, path }) => [name, version, state, sizeText(bytes), path]),
        )
      terminal.print('')
      terminal.table(
        ['ENGINE', 'PROGRAM'],
        [['gguf', 'built in'], ...engines.map(({ engine, path }) => [engine, path ?? 'not installed'])],
      )
    })
  withExamples(command, [['infer engine list', 'what is installed, and whether it is complete']])
}

/** Whether a folder of engines is for releases; one with programs of the user is not. */
const isOfReleases = (path: string, name: string): boolean =>
  Object.keys(releaseKinds).includes(name) &&
  lstatSync(join(path, 'bin'), { throwIfNoEntry: false })?.isDirectory() !== true

/** The installed releases of all engines. */
async function releasesIn(dataDir: string) {
  const { installedReleases } = await import('./releases/installed-releases.ts')
  const { folderBytes } = await import('./install-environment.ts')
  const found = Object.values(releaseKinds).flatMap(({ name }) =>
    installedReleases(dataDir, { name }).map(one => ({ engine: name as string, ...one })),
  )
  return Promise.all(
    found.map(async ({ engine, version, backend, backendVersion, says, isCurrent, path }) => ({
      engine,
      version,
      backend: backendVersion === '' ? backend : `${backend} ${backendVersion}`,
      says,
      is_current: isCurrent,
      bytes: await folderBytes(path),
      path,
    })),
  )
}

/** The versions of the libraries that make an environment what it is, by their names; empty for one of the user. */
async function versionsIn(folder: string, name: string): Promise<Record<string, string>> {
  const kind = (environmentKinds as Record<string, EnvironmentKind>)[name]
  if (kind?.source) {
    const { markerOf } = await import('./install-environment.ts')
    const { installedVersion } = await import('./comfyui-program.ts')
    const { commit = '' } = markerOf(folder) ?? {}
    const version = installedVersion(folder, commit)
    return version === undefined ? {} : { [name]: version }
  }
  const libraries = optionalNames(join(folder, 'lib')).find(one => one.startsWith('python3')) ?? ''
  const found = optionalNames(join(folder, 'lib', libraries, 'site-packages'))
  const versionOf = (library: string) =>
    found.flatMap(one => (one.startsWith(`${library}-`) ? (/-([^-]+)\.dist-info$/.exec(one)?.[1] ?? []) : []))[0]
  return Object.fromEntries(
    (kind?.modules ?? []).flatMap(library => {
      const version = versionOf(library)
      return version === undefined ? [] : [[library, version]]
    }),
  )
}

const versionsText = (versions: Record<string, string>): string =>
  Object.entries(versions)
    .map(([library, version]) => `${library} ${version}`)
    .join(', ')

/** `outdated`: made for other versions of the libraries than this infer was tested with. */
async function stateOf(folder: string, name: string): Promise<'complete' | 'outdated' | 'incomplete' | 'own'> {
  const kind = (environmentKinds as Record<string, EnvironmentKind>)[name]
  if (!kind) return 'own'
  const { isComplete, requirementsHash } = await import('./install-environment.ts')
  if (!isComplete(folder, {})) return 'incomplete'
  const current = { requirements: requirementsHash(kind), ...(kind.source && { commit: kind.source.commit }) }
  return isComplete(folder, current) || isComplete(folder, { isChosen: true }) ? 'complete' : 'outdated'
}
