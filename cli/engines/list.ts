import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { hostEnvironment } from '../../core/config.ts'
import type { InstalledVersion } from '../../core/models/engine-setup.ts'
import { findGraphicsCards } from '../../gpu/devices/graphics-cards.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import { localDirectory } from '../client/find-server.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { describeEngines } from './describe-engines.ts'
import { type EnvironmentKind, environmentKinds } from './environment-kinds.ts'
import { environmentBytes, type InstalledEnvironment, installedEnvironments } from './installed-environments.ts'
import { releaseKinds } from './releases/release-kinds.ts'

/** `infer engine list`: the backends for GPUs, installed releases, Python environments, and where engines are found. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .summary('list backends for GPUs, installed releases, Python environments and engines')
    .description(
      'Lists the backends for GPUs of the built-in engine, the installed releases of llama-server and sd-server and the Python environments of the data directory, with their state and size, and all engines with where their programs were found and what to do next. Asks no server for new versions: see infer engine update --check.',
    )
    .action(async ({ dataDir, json }) => {
      const { installedBackends } = await import('./installed-backends.ts')
      const backends = await installedBackends(localDirectory(command, dataDir), terminal.environment)
      const releases = await releasesIn(localDirectory(command, dataDir))
      const rows = await environmentsIn(localDirectory(command, dataDir))
      const { engines, setups } = describeEngines({
        dataDir: localDirectory(command, dataDir),
        path: terminal.environment.PATH ?? '',
        cards: await findGraphicsCards({ environment: hostEnvironment() }),
        installed: versionsByName([
          ...releases.map(one => ({ ...one, name: one.engine, state: 'complete' as const })),
          ...rows.flatMap(one => (one.state === 'own' ? [] : [{ ...one, state: one.state }])),
        ]),
      })
      if (json) return terminal.json({ backends, releases, environments: rows, engines, setups })
      if (rows.length + releases.length === 0)
        terminal.remark('There are no environments. Make one with: infer engine setup speech')
      const all = [
        ...backends.map(one => ({ ...one, name: `gpu (${one.name})` })),
        ...releases.map(({ engine, backend, is_current, ...release }) => ({
          ...release,
          name: `${engine} (${backend})`,
          state: is_current ? 'current' : 'beside',
        })),
        ...rows.map(({ version, versions, state, is_current, ...row }) => ({
          ...row,
          version: version === null ? versionsText(versions) : `${version} (${versionsText(versions)})`,
          state: version === null || state === 'incomplete' ? state : stateText(state, is_current),
        })),
      ]
      if (all.length > 0)
        terminal.table(
          ['NAME', 'VERSION', 'STATE', 'SIZE', 'PATH'],
          all.map(({ name, version, state, bytes, path }) => [name, version, state, sizeText(bytes), path]),
        )
      terminal.print('')
      terminal.table(
        ['ENGINE', 'PROGRAM', 'NEXT'],
        engines.map(({ engine, state, path, blocked, advice }) => [
          engine,
          path ?? (state === 'built_in' ? 'built in' : 'not installed'),
          blocked ?? advice ?? '',
        ]),
      )
    })
  withExamples(command, [['infer engine list', 'what is installed, and whether it is complete']])
}

const versionsByName = (found: readonly (InstalledVersion & { name: string })[]) =>
  Map.groupBy(
    found.map(({ name, version, is_current, state, bytes, path }) => ({
      name,
      version,
      is_current,
      state,
      bytes,
      path,
    })),
    ({ name }) => name,
  )

/** Whether a folder of engines is for releases; one with programs of the user is not. */
const isOfReleases = (path: string, name: string): boolean =>
  Object.keys(releaseKinds).includes(name) &&
  lstatSync(join(path, 'bin'), { throwIfNoEntry: false })?.isDirectory() !== true

/** The installed releases of all engines. */
async function releasesIn(dataDir: string) {
  const { installedReleases } = await import('./releases/installed-releases.ts')
  const { folderBytes } = await import('./folder-size.ts')
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

/** The versions of all environments, and folders that the user has put there. */
async function environmentsIn(dataDir: string) {
  const folder = environmentsFolder(dataDir)
  const names = existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true })
        .filter(entry => entry.isDirectory() && !isOfReleases(join(folder, entry.name), entry.name))
        .map(({ name }) => name)
        .toSorted()
    : []
  const { folderBytes } = await import('./folder-size.ts')
  return (
    await Promise.all(
      names.map(async name => {
        const path = join(folder, name)
        const kind = (environmentKinds as Record<string, EnvironmentKind>)[name]
        if (!kind)
          return [
            {
              name,
              version: null,
              is_current: true,
              state: 'own' as const,
              versions: {},
              bytes: await folderBytes(path),
              path,
            },
          ]
        const found = installedEnvironments(dataDir, kind)
        return Promise.all(
          found.map(async one => ({
            name,
            version: one.version,
            is_current: one.isCurrent,
            state: await stateOf(kind, one),
            versions: await versionsIn(kind, one),
            bytes: await environmentBytes(dataDir, kind, one),
            path: one.path,
          })),
        )
      }),
    )
  ).flat()
}

/** The versions of the libraries that make an environment what it is, by their names. */
async function versionsIn(
  kind: EnvironmentKind,
  { path, marker }: InstalledEnvironment,
): Promise<Record<string, string>> {
  if (kind.source) {
    const { installedVersion } = await import('./comfyui-program.ts')
    const version = installedVersion(path, marker?.commit ?? '')
    return version === undefined ? {} : { [kind.name]: version }
  }
  const { packagesIn } = await import('./installed-packages.ts')
  const found = packagesIn(path)
  return Object.fromEntries(
    kind.modules.flatMap(library => {
      const version = found.get(library.replaceAll('_', '-'))
      return version === undefined ? [] : [[library, version]]
    }),
  )
}

const versionsText = (versions: Record<string, string>): string =>
  Object.entries(versions)
    .map(([library, version]) => `${library} ${version}`)
    .join(', ')

const stateText = (state: string, isCurrent: boolean): string =>
  isCurrent ? (state === 'complete' ? 'current' : `current, ${state}`) : 'beside'

/** `outdated`: it has other versions of the libraries or of the worker than this infer. */
async function stateOf(
  kind: EnvironmentKind,
  { marker }: InstalledEnvironment,
): Promise<'complete' | 'outdated' | 'incomplete'> {
  if (!marker) return 'incomplete'
  const { wantedVersion } = await import('./install-environment.ts')
  const program = kind.source && { commit: kind.source.commit, isChosen: false }
  const { marker: wanted } = wantedVersion(kind, { torch: marker.torch, program })
  const isOfThis = (['requirements', 'commit', 'worker'] as const).every(key => marker[key] === wanted[key])
  return isOfThis || marker.isChosen ? 'complete' : 'outdated'
}
