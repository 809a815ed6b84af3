import { mkdir, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { backendsFolder } from '../../gpu/engines/gguf/backend-search.ts'
import { type GpuBackend, gpuBackends, gpuPackages } from '../../gpu/engines/gguf/gpu-packages.ts'
import { folderBytes } from './folder-size.ts'
import { missingPackages, presentVersion } from './install-backend.ts'

interface InstalledBackend {
  name: GpuBackend
  version: string
  /** `outdated`: of another version than this infer needs. */
  state: 'complete' | 'incomplete' | 'outdated'
  bytes: number
  path: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** The package that only this backend has, or has most of. */
const ownPackage = (name: GpuBackend) => gpuPackages[name].findLast(({ registry }) => registry === 'npm')!

/** The version of a backend that this infer needs. */
export const latestVersion = (name: GpuBackend): string => ownPackage(name).version

/** The backends for GPUs below the data directory (or INFER_BACKENDS_DIR), complete or not. */
export async function installedBackends(dataDir: string, environment: Environment): Promise<InstalledBackend[]> {
  const folder = backendsFolder(dataDir, environment)
  const found: InstalledBackend[] = []
  for (const name of gpuBackends) {
    const own = ownPackage(name)
    const version = presentVersion(folder, own)
    const isComplete = missingPackages(folder, gpuPackages[name]).length === 0
    // The backend for older drivers needs the package of the main one, in part.
    const isPartOfOlder = name === 'cuda' && !isComplete && presentVersion(folder, ownPackage('cuda-12')) !== undefined
    if (version === undefined || isPartOfOlder) continue
    const path = join(folder, 'node_modules', own.into)
    const state = version !== own.version ? 'outdated' : isComplete ? 'complete' : 'incomplete'
    found.push({ name, version, state, bytes: await folderBytes(path), path })
  }
  return found
}

/** Deletes all backends for GPUs, and downloads of them. Running engines keep theirs. Resolves with the freed bytes. */
export async function removeBackends(dataDir: string, environment: Environment): Promise<number> {
  const folder = backendsFolder(dataDir, environment)
  const packages = new Set(gpuBackends.flatMap(name => gpuPackages[name]).filter(({ registry }) => registry === 'npm'))
  const paths = [...packages].map(({ into }) => join(folder, 'node_modules', into)).concat(join(folder, 'downloads'))
  const removed = join(folder, `.setup-removed-${process.pid}`)
  let bytes = 0
  for (const path of new Set(paths)) {
    const size = await folderBytes(path)
    if (size === 0) continue
    bytes += size
    // Renamed first, so that an interruption leaves no half of a package under its name.
    await mkdir(removed, { recursive: true })
    await rename(path, join(removed, basename(path)))
  }
  await rm(removed, { recursive: true, force: true })
  return bytes
}
