import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../../core/models/config.ts'
import type { Model } from '../../core/models/model.ts'
import { optionalJson, optionalNames } from '../../core/optional-file.ts'
import { currentLink, environmentsFolder } from '../../gpu/launcher/environment.ts'
import { presetOf } from '../../gpu/presets/presets.ts'
import type { EnvironmentKind } from './environment-kinds.ts'
import { folderBytes } from './folder-size.ts'
import { packagesIn } from './installed-packages.ts'
import { replaceLink } from './replace-folder.ts'
import { processesBelow } from './running-programs.ts'

/** What a complete environment was made of. Written last, so that it is missing in an interrupted one. */
export interface Marker {
  /** SHA-256 of the list of requirements. */
  requirements: string
  torch: string
  /** Those of its program, where it has one. */
  commit?: string | undefined
  /** Whether the user chose the commit or the requirements. */
  isChosen?: boolean | undefined
  /** SHA-256 of the worker of infer, where it has it. */
  worker?: string | undefined
  /** It was installed for models that name it, which may be in files that infer does not know. */
  beside?: boolean | undefined
}

const markerFile = 'infer-setup.json'

export interface InstalledEnvironment {
  /** Null for one that was interrupted before it had versions. */
  version: string | null
  path: string
  /** Undefined for one that is not complete. */
  marker: Marker | undefined
  /** Whether models without `engine_version` use it. */
  isCurrent: boolean
}

/** The folder of all versions of an environment. */
export const versionsFolder = (dataDir: string, { name }: Pick<EnvironmentKind, 'name'>): string =>
  join(environmentsFolder(dataDir), name)

/** What an environment was made of; undefined for one that is not complete. */
export const markerOf = (folder: string): Marker | undefined =>
  optionalJson(join(folder, markerFile)) as Marker | undefined

export const markerText = (marker: Marker) => ({ name: markerFile, text: JSON.stringify(marker) })

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const versionName = /^[A-Za-z0-9][A-Za-z0-9._-]*-[0-9a-f]{8}$/

/**
 * The name of a version: that of its main library or program, and a hash of what it is made of, so that the same command
 * continues an interrupted installation, and no other changes its files. Pure.
 */
export function versionOf(main: string, { requirements, torch, commit = '' }: Marker): string {
  const hash = sha256(JSON.stringify([requirements, torch, commit])).slice(0, 8)
  return `${main.replaceAll(/[^A-Za-z0-9.]+/g, '.')}-${hash}`
}

/** The version of the main library or program of an installed environment. */
function mainVersionIn(kind: EnvironmentKind, folder: string, { commit }: Marker): string {
  if (kind.source)
    return commit === kind.source.commit || commit === undefined ? kind.source.version : commit.slice(0, 12)
  return packagesIn(folder).get(kind.library) ?? '0'
}

/**
 * The versions of an environment, the current one first, interrupted installations included. Before there were versions
 * an environment was the folder itself: that one is the current one until another is installed.
 */
export function installedEnvironments(dataDir: string, kind: EnvironmentKind): InstalledEnvironment[] {
  const folder = versionsFolder(dataDir, kind)
  const own = realPath(folder) ?? folder
  const current = realPath(join(folder, currentLink)) ?? own
  const entryOf = (version: string | null, path: string): InstalledEnvironment => ({
    version,
    path,
    marker: markerOf(path),
    isCurrent: path === current,
  })
  const named = optionalNames(folder)
    .filter(name => versionName.test(name))
    .toSorted()
    .map(version => entryOf(version, realPath(join(folder, version)) ?? join(folder, version)))
  const isUnnamed = existsSync(join(folder, 'bin')) && !named.some(({ path }) => path === own)
  const marker = isUnnamed ? markerOf(own) : undefined
  const unnamed = isUnnamed ? [entryOf(marker ? versionOf(mainVersionIn(kind, own, marker), marker) : null, own)] : []
  return [...unnamed, ...named].toSorted((one, other) => Number(other.isCurrent) - Number(one.isCurrent))
}

/** Whether a version is the folder of the environment itself, as before there were versions. */
const isFirstOf = (dataDir: string, kind: EnvironmentKind, { path }: Pick<InstalledEnvironment, 'path'>): boolean =>
  path === realPath(versionsFolder(dataDir, kind))

/** Gives the environment that an infer without versions has made the name of its version, and leaves its files as they are. */
export function adoptFirst(dataDir: string, kind: EnvironmentKind): void {
  const folder = versionsFolder(dataDir, kind)
  const first = installedEnvironments(dataDir, kind).find(one => isFirstOf(dataDir, kind, one))
  if (first?.marker === undefined || existsSync(join(folder, first.version!))) return
  linkProgram(folder, kind, first.version!)
  symlinkSync('.', join(folder, first.version!))
  if (first.isCurrent) symlinkSync(first.version!, join(folder, currentLink))
}

/** Links the name that only the program of this version has: see `programOfVersion`. */
export function linkProgram(path: string, { program }: EnvironmentKind, version: string): void {
  const link = join(path, 'bin', `${program}-${version}`)
  rmSync(link, { force: true })
  symlinkSync(program, link)
}

/** Makes a version the current one, in one step: an engine that starts meanwhile gets the old or the new one. */
export const makeCurrent = (dataDir: string, kind: EnvironmentKind, version: string): Promise<void> =>
  replaceLink(join(versionsFolder(dataDir, kind), currentLink), version)

/** The folder for the files of a version, without what an interrupted installation of another layout left there. */
export function folderFor(dataDir: string, kind: EnvironmentKind, version: string): string {
  const path = join(versionsFolder(dataDir, kind), version)
  mkdirSync(versionsFolder(dataDir, kind), { recursive: true, mode: 0o755 })
  return path
}

/** The versions of an environment that models of infer.yaml name, disabled models included. `required`: the file must exist. */
export const pinnedVersions = (config: string, kind: EnvironmentKind, required: boolean): Set<string> =>
  new Set(readConfig(config, required).models.flatMap(model => versionsOf(model, kind)))

/** The versions of an environment that a model names, by `engine_version` or by its path. */
export function versionsOf(model: Model, { name }: Pick<EnvironmentKind, 'name'>): string[] {
  const places = presetOf(model).environments?.(model) ?? []
  return places.flatMap(place => new RegExp(`(?:^|/)${name}/([^/]+)$`).exec(place)?.[1] ?? [])
}

export interface Pruned {
  /** Versions that nothing used any more, and interrupted installations. */
  deleted: string[]
  /** Versions that stay because engines run from them. */
  running: string[]
}

/**
 * Deletes the versions that are neither current, nor the newest of the others, nor in `pinned`, nor installed beside another
 * one, and from which no process runs; and what interrupted installations of others than `version` have left. With null
 * for `pinned` it deletes no complete version.
 */
export async function pruneEnvironments(
  dataDir: string,
  kind: EnvironmentKind,
  { version, pinned }: { version: string; pinned: ReadonlySet<string> | null },
): Promise<Pruned> {
  const others = installedEnvironments(dataDir, kind).filter(one => !one.isCurrent && one.version !== version)
  const unused = pinned === null ? [] : unusedOf(others, pinned)
  const interrupted = others.filter(one => one.marker === undefined && isOfSetup(one.path))
  const pruned: Pruned = { deleted: [], running: [] }
  for (const one of [...unused, ...interrupted]) {
    const name = one.version ?? kind.name
    if (processesBelow(one.path).length > 0) pruned.running.push(name)
    else {
      await deleteVersion(dataDir, kind, one)
      pruned.deleted.push(name)
    }
  }
  const folder = versionsFolder(dataDir, kind)
  for (const name of optionalNames(folder))
    if (/^\.(old|trial)-/.test(name)) await rm(join(folder, name), { recursive: true, force: true })
  return pruned
}

/** Whether a folder that is not complete was begun by a setup, and not by the user. */
const isOfSetup = (path: string): boolean => existsSync(join(path, requirementsFile))

/** The list of requirements in the folder of an environment. */
export const requirementsFile = 'infer-requirements.txt'

/** The versions that may be deleted: without the newest, to which a user may want to go back. */
const unusedOf = (others: readonly InstalledEnvironment[], pinned: ReadonlySet<string>): InstalledEnvironment[] =>
  others
    .filter(({ marker }) => marker !== undefined && !marker.beside)
    .toSorted((one, other) => installedAt(other) - installedAt(one))
    .slice(1)
    .filter(({ version }) => !pinned.has(version!))

const installedAt = ({ path }: InstalledEnvironment): number => statSync(join(path, markerFile)).mtimeMs

/** Deletes the files of a version. Renamed first, so that an interruption leaves no half of it under its name. */
export async function deleteVersion(
  dataDir: string,
  kind: EnvironmentKind,
  one: Pick<InstalledEnvironment, 'version' | 'path'>,
): Promise<void> {
  const folder = versionsFolder(dataDir, kind)
  const link = one.version === null ? undefined : join(folder, one.version)
  if (!isFirstOf(dataDir, kind, one)) {
    const aside = join(folder, `.old-${process.pid}-${one.version}`)
    await rename(one.path, aside)
    return await rm(aside, { recursive: true, force: true })
  }
  if (link !== undefined) rmSync(link, { force: true })
  rmSync(join(folder, markerFile), { force: true })
  // The other versions are in the same folder.
  for (const name of optionalNames(folder))
    if (name !== currentLink && !versionName.test(name)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Bytes of the files of a version. The folder of one that was made before there were versions contains the others. */
export async function environmentBytes(
  dataDir: string,
  kind: EnvironmentKind,
  one: Pick<InstalledEnvironment, 'path'>,
): Promise<number> {
  const bytes = await folderBytes(one.path)
  if (!isFirstOf(dataDir, kind, one)) return bytes
  const others = installedEnvironments(dataDir, kind).filter(({ path }) => path !== one.path)
  const sizes = await Promise.all(others.map(({ path }) => folderBytes(path)))
  return sizes.reduce((left, size) => left - size, bytes)
}

/** Whether a version has the files of an environment without versions: its folder is a link. */
export const isAdopted = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** The fields of a version in the output of a command with --json. */
export const versionFields = ({
  version,
  isCurrent,
  deleted,
  running,
  lacks,
}: Pruned & { version: string; isCurrent: boolean; lacks: readonly string[] }) => ({
  version,
  is_current: isCurrent,
  deleted,
  running,
  lacks,
})
