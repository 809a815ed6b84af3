import { lstatSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { invalidValue } from '../../../core/failure.ts'
import { readConfig } from '../../../core/models/config.ts'
import { optionalNames } from '../../../core/optional-file.ts'
import { environmentsFolder } from '../../../gpu/launcher/environment.ts'
import { replaceLink } from '../replace-folder.ts'
import { identityOf, runningFiles } from '../running-programs.ts'
import { type Build, type ReleaseKind, releaseBackends, releaseName } from './release-kinds.ts'

/** What is known of an installed release. Written before the folder gets its name, so every named folder is complete. */
const Marker = z.object({
  version: z.string().regex(releaseName),
  backend: z.enum(releaseBackends),
  backendVersion: z.string(),
  /** What the program says of its version; null if it says nothing. */
  says: z.string().nullable(),
  /** It was installed for models that name it, which may be in files that infer does not know. */
  beside: z.boolean().default(false),
})
export type ReleaseMarker = z.output<typeof Marker>

const markerName = 'infer-release.json'

export interface InstalledRelease extends ReleaseMarker {
  /** Whether models without `engine_version` use it. */
  isCurrent: boolean
  path: string
}

/** The folder of all releases of an engine. Its link `bin` leads to the programs of the current one. */
export const releasesFolder = (dataDir: string, { name }: Pick<ReleaseKind, 'name'>): string =>
  join(environmentsFolder(dataDir), name)

/** The text of the file that marks a complete release: its path below the folder of the release, and its content. */
export function markerOf({ build, ...facts }: Omit<ReleaseMarker, 'backend' | 'backendVersion'> & { build: Build }) {
  const marker: ReleaseMarker = { ...facts, backend: build.backend, backendVersion: build.backendVersion }
  return { name: markerName, text: textOf(marker) }
}
const textOf = (marker: ReleaseMarker): string => `${JSON.stringify(marker)}\n`

/** The installed releases of an engine, the current one first. */
export function installedReleases(dataDir: string, kind: Pick<ReleaseKind, 'name'>): InstalledRelease[] {
  const folder = releasesFolder(dataDir, kind)
  const current = currentVersion(folder)
  return optionalNames(folder)
    .filter(name => releaseName.test(name))
    .toSorted()
    .flatMap(name => {
      const marker = markerIn(join(folder, name))
      return marker?.version === name ? { ...marker, isCurrent: name === current, path: join(folder, name) } : []
    })
    .toSorted((one, other) => Number(other.isCurrent) - Number(one.isCurrent))
}

/** Notes whether an installed release is kept for models that name it. One that is put into use is like any other. */
export async function markBeside(dataDir: string, kind: ReleaseKind, version: string, beside: boolean): Promise<void> {
  const folder = join(releasesFolder(dataDir, kind), version)
  const marker = markerIn(folder)!
  if (marker.beside === beside) return
  const path = join(folder, markerName)
  await writeFile(`${path}.new`, textOf({ ...marker, beside }), { flush: true })
  await rename(`${path}.new`, path)
}

function markerIn(folder: string): ReleaseMarker | undefined {
  try {
    return Marker.parse(JSON.parse(readFileSync(join(folder, markerName), 'utf8')))
  } catch {
    return undefined
  }
}

const linkName = 'bin'

function currentVersion(folder: string): string | undefined {
  try {
    return readlinkSync(join(folder, linkName)).split('/')[0]
  } catch {
    return undefined
  }
}

/** Throws Failure `invalid_value` where the folder of the engine has programs that infer did not put there. */
export function requireOwnFolder(dataDir: string, kind: ReleaseKind): void {
  const link = join(releasesFolder(dataDir, kind), linkName)
  if (lstatSync(link, { throwIfNoEntry: false })?.isDirectory())
    throw invalidValue(
      `${link} has programs that infer did not install. Move that folder away, or keep using it: models with 'engine: ${kind.name}' do.`,
    )
}

/** Makes a release the current one, in one step: an engine that starts meanwhile gets the old or the new program. */
export async function makeCurrent(dataDir: string, kind: ReleaseKind, version: string): Promise<void> {
  await replaceLink(join(releasesFolder(dataDir, kind), linkName), join(version, 'bin'))
}

/** The versions of an engine that models of infer.yaml name, disabled models included. `required`: the file must exist. */
export const pinnedVersions = (config: string, { name }: Pick<ReleaseKind, 'name'>, required: boolean): Set<string> =>
  new Set(
    readConfig(config, required).models.flatMap(model => (model.engine === name ? (model.engine_version ?? []) : [])),
  )

/**
 * Deletes the releases that are neither current, nor the newest of the others, nor in `pinned`, nor installed beside another
 * one, and from which no process runs; and what interrupted setups have left. With null for `pinned` it deletes no release.
 * Returns the versions that are deleted, and those that only running engines keep.
 */
export async function pruneReleases(
  dataDir: string,
  kind: ReleaseKind,
  pinned: ReadonlySet<string> | null,
): Promise<{ deleted: string[]; running: string[] }> {
  const folder = releasesFolder(dataDir, kind)
  const unused = pinned === null ? [] : unusedOf(installedReleases(dataDir, kind), pinned)
  const left = optionalNames(folder).filter(name => /^\.(setup|old)-/.test(name))
  const running = new Set(runningFiles())
  const isRunning = (path: string) => running.has(identityOf(join(path, 'bin', kind.name)) ?? '')
  const result = { deleted: [] as string[], running: [] as string[] }
  for (const { version, path } of unused) {
    if (isRunning(path)) {
      result.running.push(version)
      continue
    }
    await removeRelease(path)
    result.deleted.push(version)
  }
  for (const name of left)
    if (!isRunning(join(folder, name))) await rm(join(folder, name), { recursive: true, force: true })
  return result
}

/** The releases that may be deleted: without the newest, to which a user may want to go back. */
const unusedOf = (installed: readonly InstalledRelease[], pinned: ReadonlySet<string>): InstalledRelease[] =>
  installed
    .filter(one => !one.isCurrent && !one.beside)
    .toSorted((one, other) => installedAt(other) - installedAt(one))
    .slice(1)
    .filter(({ version }) => !pinned.has(version))

const installedAt = ({ path }: InstalledRelease): number => statSync(join(path, markerName)).mtimeMs

/** Deletes the folder of a release. Renamed first, so that an interruption leaves no half of a release under its name. */
export async function removeRelease(path: string): Promise<void> {
  const aside = join(path, '..', `.old-${process.pid}-${path.split('/').at(-1)}`)
  await rename(path, aside)
  await rm(aside, { recursive: true, force: true })
}
