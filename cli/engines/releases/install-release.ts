import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Failure, invalidValue } from '../../../core/failure.ts'
import { withLock } from '../../../core/models/hub/lock.ts'
import type { PullEvent } from '../../../core/models/hub/pull.ts'
import { defaultRetryRules } from '../../../core/models/hub/requests.ts'
import { isComplete, requireSpace, transfer } from '../../../core/models/hub/transfer.ts'
import { environmentsFolder } from '../../../gpu/launcher/environment.ts'
import type { SandboxSupport } from '../../../gpu/sandbox/level.ts'
import { replaceFolder } from '../replace-folder.ts'
import { type BuildChoice, textOf } from './choose-build.ts'
import { openReleaseDownload, type Release, type ReleaseFile, type ReleaseSource } from './find-release.ts'
import {
  installedReleases,
  makeCurrent,
  markBeside,
  markerOf,
  pinnedVersions,
  pruneReleases,
  releasesFolder,
  requireOwnFolder,
} from './installed-releases.ts'
import type { ReleaseKind } from './release-kinds.ts'
import { type Trial, type TrialTimes, tryRelease } from './try-release.ts'
import { unpackBuild } from './unpack-build.ts'

export type Chosen = Extract<BuildChoice, { libraries: unknown }>

interface FetchTools {
  source: ReleaseSource
  signal: AbortSignal
  onEvent: (event: PullEvent) => void
}

interface InstallOptions extends FetchTools {
  kind: ReleaseKind
  release: Release
  chosen: Chosen
  dataDir: string
  /** The file whose models may name versions, besides infer.yaml of the data directory. */
  config: string
  /**
   * Resolves with the versions that models of the running server name; with null where it does not tell, and then no version
   * is deleted. Called when the installation, which may take minutes, is complete.
   */
  served: () => Promise<ReadonlySet<string> | null>
  /** A folder of the user that has the files; undefined to download them. */
  given: string | undefined
  /** Keep the current version for models that name none. */
  beside: boolean
  /** The environment from which that of the engine is built. */
  host: Readonly<Record<string, string | undefined>>
  /** How engines are confined on this machine. */
  sandbox: SandboxSupport
  onStep: (text: string) => void
  times?: TrialTimes
}

export interface Installed {
  trial: Trial
  path: string
  isCurrent: boolean
  /** Versions that nothing used any more. */
  deleted: readonly string[]
  /** Versions that stay because engines run from them. */
  running: readonly string[]
}

/**
 * The files of a release that are needed for a build. Throws Failure `invalid_value` if the release publishes no digest for
 * one of them: what cannot be verified is not installed.
 */
export function filesOf({ files, version }: Release, { build, libraries }: Chosen): ReleaseFile[] {
  return [build, ...(libraries ? [libraries] : [])].map(({ file }) => {
    const found = files.find(({ name }) => name === file)!
    if (found.sha256 === null)
      throw invalidValue(
        `The release ${version} publishes no SHA-256 for ${file}, so it is not installed. Choose another one with --release.`,
      )
    return found
  })
}

/**
 * Installs a build of a release below `engines` of the data directory, tries it, and only then makes it the current
 * version; with the version that is installed already it only does the latter. If the trial fails, everything stays as it
 * was, and the downloads are kept for the next attempt. Deletes versions that nothing uses any more. Rejects with Failure,
 * or with the reason of the signal.
 */
export async function installRelease(options: InstallOptions): Promise<Installed> {
  const { kind, dataDir, signal, onEvent } = options
  mkdirSync(environmentsFolder(dataDir), { recursive: true, mode: 0o700 })
  requireOwnFolder(dataDir, kind)
  const folder = releasesFolder(dataDir, kind)
  const onWait = () => onEvent({ event: 'wait', file: kind.title })
  return await withLock(`${folder}.lock`, { signal, onWait }, async () => {
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    // Read before anything changes: a wrong file is reported now.
    const own = join(dataDir, 'infer.yaml')
    const configs = new Set([options.config, own])
    const pinned = () => [...configs].flatMap(config => [...pinnedVersions(config, kind, config !== own)])
    pinned()
    const { trial, path } = await install(options, folder)
    const isCurrent = !options.beside || installedReleases(dataDir, kind).every(one => !one.isCurrent)
    await markBeside(dataDir, kind, options.release.version, options.beside)
    if (isCurrent) await makeCurrent(dataDir, kind, options.release.version)
    const served = await options.served()
    const kept = served && new Set([...pinned(), ...served, options.release.version])
    return { trial, path, isCurrent, ...(await pruneReleases(dataDir, kind, kept)) }
  })
}

async function install(options: InstallOptions, folder: string): Promise<{ trial: Trial; path: string }> {
  const { kind, release, chosen, dataDir, given, signal, onStep } = options
  const { version } = release
  const { build, libraries } = chosen
  const path = join(folder, version)
  const present = installedReleases(dataDir, kind).find(one => one.version === version)
  if (present?.backend === build.backend && present.backendVersion === build.backendVersion)
    return { trial: await tryAt(path, options), path }
  if (present && options.beside)
    throw new Failure(
      'conflict',
      `${kind.title} ${version} is installed for ${textOf(present)}, and a version has one build. Take another release with --release to have both, or replace this one without --beside.`,
    )
  const downloads = join(folder, 'downloads')
  const files = filesOf(release, chosen)
  const from = given ?? downloads
  if (given === undefined) await fetchFiles(files, downloads, options)
  for (const file of files) await verify(file, from, given !== undefined, signal)
  onStep('Unpacking')
  const temporary = join(folder, `.setup-${process.pid}`)
  const aside = join(folder, `.old-${process.pid}`)
  try {
    await rm(temporary, { recursive: true, force: true })
    await unpackBuild(
      { program: kind.name, archive: join(from, build.file), libraries: libraries && join(from, libraries.file) },
      temporary,
      signal,
    )
    const trial = await tryAt(temporary, options)
    // The name that only this version has: see `releasedProgram`.
    await symlink(kind.name, join(temporary, 'bin', `${kind.name}-${version}`))
    const marker = markerOf({ version, build, says: trial.says, beside: options.beside })
    await writeFile(join(temporary, marker.name), marker.text, { flush: true })
    await replaceFolder(path, temporary, aside)
    await rm(downloads, { recursive: true, force: true })
    return { trial, path }
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

async function tryAt(
  path: string,
  { kind, dataDir, chosen, host, sandbox, signal, onStep, times }: InstallOptions,
): Promise<Trial> {
  onStep('Trying the program')
  const home = join(releasesFolder(dataDir, kind), `.setup-home-${process.pid}`)
  await mkdir(home, { recursive: true })
  try {
    return await tryRelease({
      kind,
      build: chosen.build,
      bin: join(path, 'bin'),
      home,
      dataDir,
      sandbox,
      host,
      signal,
      ...(times && { times }),
    })
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    const current = installedReleases(dataDir, kind).find(one => one.isCurrent)
    const stays = current === undefined ? 'Nothing was installed.' : `Models keep using ${current.version}.`
    throw new Failure(thrown.code, `${thrown.message} ${stays}`, { cause: thrown })
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** Bytes that a byte of an archive becomes at most, as a rule. */
const unpackedRatio = 4

/**
 * Downloads files of a release to `folder` and verifies them. Interrupted downloads continue; other files are deleted if
 * the folder belongs to infer.
 */
async function fetchFiles(files: readonly ReleaseFile[], folder: string, options: FetchTools & { kind: ReleaseKind }) {
  await mkdir(folder, { recursive: true })
  const names = new Set(files.flatMap(({ name }) => [name, `${name}.part`]))
  for (const name of await readdir(folder)) if (!names.has(name)) await rm(join(folder, name), { force: true })
  const bytes = files.reduce((sum, one) => sum + one.bytes, 0)
  await requireSpace(folder, [{ size: bytes * unpackedRatio, incomplete: '' }], '--data-dir')
  await downloadFiles(files, folder, options)
}

/** Downloads files of a release to `folder` and verifies them. Interrupted downloads continue. */
export async function downloadFiles(
  files: readonly ReleaseFile[],
  folder: string,
  { kind, source, signal, onEvent }: FetchTools & { kind: ReleaseKind },
): Promise<void> {
  const retryRules = source.retryRules ?? defaultRetryRules
  const present = await Promise.all(files.map(({ name, bytes }) => isComplete(join(folder, name), bytes)))
  const missing = files.filter((_, at) => !present[at])
  if (missing.length === 0) return
  onEvent({
    event: 'plan',
    source: new URL(missing[0]!.url).host,
    commit: null,
    files: files.map(({ name, bytes }, at) => ({ file: name, bytes, present: present[at]! })),
    bytes: missing.reduce((sum, one) => sum + one.bytes, 0),
    others: [],
  })
  for (const { name, bytes, sha256, url } of missing) {
    const incomplete = join(folder, `${name}.part`)
    const { ask, first } = openReleaseDownload(kind, new URL(url), source, signal)
    let isReached = false
    await transfer(
      { name, url, incomplete, size: bytes, hash: { kind: 'sha256', hex: sha256! } },
      {
        // The first request shows whether there is a network, and fails within seconds if there is none.
        ask: async (address, headers) => {
          const answer = await (isReached ? ask(address, headers) : first(() => ask(address, headers)))
          isReached = true
          return answer
        },
        retryRules,
        signal,
        onEvent,
      },
    )
    await rename(incomplete, join(folder, name))
    onEvent({ event: 'file', file: name, path: join(folder, name), bytes, present: false })
  }
}

/** Checks the digest of a file on the disk. One of the user stays, another is deleted. */
async function verify({ name, bytes, sha256 }: ReleaseFile, folder: string, given: boolean, signal: AbortSignal) {
  const path = join(folder, name)
  const size = (await stat(path).catch(() => null))?.size
  const digest = createHash('sha256')
  if (size === bytes) await pipeline(createReadStream(path), digest, { signal })
  if (size === bytes && digest.digest('hex') === sha256) return
  if (size === undefined)
    throw invalidValue(
      `${folder} has no file ${name}. Fill the folder with --download-only on a machine with a network.`,
    )
  if (!given) await rm(path, { force: true })
  throw invalidValue(
    `${path} is not the file of the release: its ${size === bytes ? 'SHA-256' : 'size'} differs, so nothing was installed. ${given ? 'Copy it again.' : 'It was deleted; run the same command again.'}`,
  )
}
