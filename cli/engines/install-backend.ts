import { createHash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Failure, invalidValue } from '../../core/failure.ts'
import { withLock } from '../../core/models/hub/lock.ts'
import type { PullEvent } from '../../core/models/hub/pull.ts'
import { defaultRetryRules, type HubFetch, openDownload, type RetryRules } from '../../core/models/hub/requests.ts'
import type { HubSettings } from '../../core/models/hub/settings.ts'
import { isComplete, requireSpace, transfer } from '../../core/models/hub/transfer.ts'
import { extractMember } from '../../core/models/package-index/extract-member.ts'
import { extractTarball } from '../../core/models/package-index/extract-tarball.ts'
import { findPackageFile } from '../../core/models/package-index/find-package-file.ts'
import { optionalJson } from '../../core/optional-file.ts'
import type { GpuPackage } from '../../gpu/engines/gguf/gpu-packages.ts'
import { replaceFolder } from './replace-folder.ts'

/** From where packages come. Addresses have no slash at their end. */
export interface PackageSources {
  npmRegistry: string
  packageIndex: string
  /** For the proxy, and whether the network may be used. */
  hub: HubSettings
  retryRules?: RetryRules
}

interface InstallTools {
  signal: AbortSignal
  onEvent: (event: PullEvent) => void
}

/** Bytes of the small files of a package, which are not listed. */
const restBytes = 32 << 20

/** A package of npm with the libraries that are put into it. */
type PackageGroup = readonly [main: GpuPackage, ...libraries: GpuPackage[]]

const groupsOf = (packages: readonly GpuPackage[]): PackageGroup[] =>
  packages
    .filter(({ registry }) => registry === 'npm')
    .map(main => [main, ...packages.filter(({ into }) => into.startsWith(`${main.into}/`))])

const modules = (folder: string) => join(folder, 'node_modules')
const targetOf = ({ registry, into }: GpuPackage, path: string) =>
  join(into, registry === 'npm' ? path : basename(path))

/** The version of a package of npm that is below `folder`. */
export const presentVersion = (folder: string, { into }: GpuPackage): string | undefined =>
  (optionalJson(join(modules(folder), into, 'package.json')) as { version?: string } | undefined)?.version

function isInstalled(folder: string, [main, ...libraries]: PackageGroup): boolean {
  if (presentVersion(folder, main) !== main.version) return false
  return [main, ...libraries].every(one =>
    one.files.every(
      ({ path, bytes }) =>
        statSync(join(modules(folder), targetOf(one, path)), { throwIfNoEntry: false })?.size === bytes,
    ),
  )
}

/** The packages that are not complete below `folder`. */
export const missingPackages = (folder: string, packages: readonly GpuPackage[]): GpuPackage[] =>
  groupsOf(packages).flatMap(group => (isInstalled(folder, group) ? [] : group))

/**
 * Downloads the packages to `folder` and verifies them. An interrupted download continues where it stopped; a file with
 * another hash is deleted. Rejects with Failure, or with the reason of the signal.
 */
export async function downloadPackages(
  packages: readonly GpuPackage[],
  folder: string,
  sources: PackageSources,
  tools: InstallTools,
): Promise<void> {
  await mkdir(folder, { recursive: true })
  await locked(folder, tools, () => fetchPackages(packages, folder, sources, tools))
}

const locked = (folder: string, { signal, onEvent }: InstallTools, run: () => Promise<void>): Promise<void> =>
  withLock(
    join(folder, '.setup.lock'),
    { signal, onWait: () => onEvent({ event: 'wait', file: 'the same packages' }) },
    run,
  )

async function fetchPackages(
  packages: readonly GpuPackage[],
  folder: string,
  sources: PackageSources,
  { signal, onEvent }: InstallTools,
): Promise<void> {
  const partOf = (file: string) => join(folder, `${file}.part`)
  const files = await Promise.all(
    packages.map(async ({ file, bytes }) => ({ file, bytes, present: await isComplete(join(folder, file), bytes) })),
  )
  const missing = packages.filter((_, at) => !files[at]!.present)
  if (missing.length > 0)
    onEvent({ event: 'plan', source: hostsOf(missing, sources), commit: null, files, bytes: sum(missing), others: [] })
  await requireSpace(
    folder,
    missing.map(({ file, bytes }) => ({ size: bytes, incomplete: partOf(file) })),
    '--data-dir',
  )
  const { retryRules = defaultRetryRules } = sources
  for (const one of missing) {
    const { file, bytes, hash } = one
    const { ask, url } = await locate(one, sources, retryRules, signal)
    await transfer(
      { name: file, url, incomplete: partOf(file), size: bytes, hash },
      { ask, retryRules, signal, onEvent },
    )
    await rename(partOf(file), join(folder, file))
    onEvent({ event: 'file', file, path: join(folder, file), bytes, present: false })
  }
}

const sum = (packages: readonly GpuPackage[]): number => packages.reduce((all, { bytes }) => all + bytes, 0)

const addressOf = ({ registry }: GpuPackage, { npmRegistry, packageIndex }: PackageSources): string =>
  registry === 'npm' ? npmRegistry : packageIndex

/** The hosts of the registries, for messages. */
export const hostsOf = (packages: readonly GpuPackage[], sources: PackageSources): string =>
  [...new Set(packages.map(one => new URL(addressOf(one, sources)).host))].join(' and ')

/** Returns the address of a package, and the requests with which it is downloaded. */
async function locate(
  one: GpuPackage,
  sources: PackageSources,
  retryRules: RetryRules,
  signal: AbortSignal,
): Promise<{ ask: HubFetch; url: string }> {
  const { registry, name, file, hash } = one
  const base = addressOf(one, sources)
  const target = new URL(base)
  const { ask, first } = openDownload({
    target,
    hub: { ...sources.hub, token: undefined },
    repository: name,
    retryRules,
    signal,
    instead: 'Or run this command with --download-only DIR on another machine, and with --from DIR here.',
  })
  const url =
    registry === 'npm'
      ? `${base}/${name}/-/${file}`
      : await first(() => findPackageFile({ index: base, name, file, sha256: hash.hex }, ask))
  // The first request shows whether there is a network, and fails within seconds if there is none.
  let isReached = registry === 'pypi'
  const checked: HubFetch = async (address, headers) => {
    try {
      const answer = await (isReached ? ask(address, headers) : first(() => ask(address, headers)))
      isReached = true
      return answer
    } catch (thrown) {
      if (!(thrown instanceof Failure && thrown.code === 'invalid_api_key')) throw thrown
      throw invalidValue(
        `${target.host} asks for a login, which infer does not send. Name another registry with ${registry === 'npm' ? '--npm-registry' : '--index-url'}.`,
      )
    }
  }
  return { ask: checked, url }
}

/**
 * Installs packages below `folder`, from `files`, where they have been downloaded, and deletes `files` unless it was
 * `given` by the user. Complete packages are left as they are. A package appears at its place whole, by renaming.
 * Rejects with Failure; `invalid_value` for a file of the user that is missing or has another hash.
 */
export async function installPackages(
  packages: readonly GpuPackage[],
  { folder, files, sources, given }: { folder: string; files: string; given: boolean; sources: PackageSources },
  tools: InstallTools & { onUnpack: () => void },
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 })
  await locked(folder, tools, async () => {
    const groups = groupsOf(packages).filter(group => !isInstalled(folder, group))
    for (const left of await readdir(folder))
      if (left.startsWith('.setup-')) await rm(join(folder, left), { recursive: true, force: true })
    const wanted = groups.flat()
    if (!given) {
      await mkdir(files, { recursive: true })
      await fetchPackages(wanted, files, sources, tools)
    }
    const unpacked = wanted.flatMap(one => one.files).reduce((all, { bytes }) => all + bytes, 0)
    await requireSpace(folder, [{ size: unpacked + groups.length * restBytes, incomplete: '' }], '--data-dir')
    for (const one of wanted) await verify(one, files, given, tools.signal)
    if (wanted.length > 0) tools.onUnpack()
    const temporary = join(folder, `.setup-${process.pid}`)
    try {
      for (const one of wanted) await unpack(one, join(files, one.file), temporary, tools.signal)
      for (const [main] of groups) await place(main, folder, temporary)
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
    if (!given) await rm(files, { recursive: true, force: true })
  })
}

/** Checks the hash of a file on the disk. One of the user stays, another is deleted. */
async function verify(one: GpuPackage, files: string, given: boolean, signal: AbortSignal): Promise<void> {
  const { file, bytes, hash } = one
  const path = join(files, file)
  const size = (await stat(path).catch(() => null))?.size
  if (size === undefined)
    throw invalidValue(
      `${files} has no file ${file}. Download it on a machine with a network: infer engine setup gpu --download-only DIR`,
    )
  const digest = createHash(hash.kind)
  if (size === bytes) await pipeline(createReadStream(path), digest, { signal })
  if (size === bytes && digest.digest('hex') === hash.hex) return
  if (!given) await rm(path, { force: true })
  throw invalidValue(
    `${path} is not the file that infer expects: its ${size === bytes ? hash.kind : 'size'} differs, so nothing was installed. ${given ? 'Copy it again.' : 'It was deleted; run the same command again.'}`,
  )
}

async function unpack(one: GpuPackage, archive: string, temporary: string, signal: AbortSignal): Promise<void> {
  const folder = join(temporary, one.into)
  if (one.registry === 'npm') return extractTarball(archive, folder, { isWanted: path => path !== one.without, signal })
  await mkdir(folder, { recursive: true, mode: 0o755 })
  for (const { path } of one.files) await extractMember(archive, path, join(folder, basename(path)), signal)
  await extractMember(archive, one.licenseFile, join(folder, `${one.name}.LICENSE`), signal)
}

/** Renames the package into its place. One that was there goes into the temporary folder, which is deleted. */
async function place({ into }: GpuPackage, folder: string, temporary: string): Promise<void> {
  const target = join(modules(folder), into)
  await mkdir(dirname(target), { recursive: true, mode: 0o755 })
  await replaceFolder(target, join(temporary, into), join(temporary, `before-${basename(into)}`))
}
