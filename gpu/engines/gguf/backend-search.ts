import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, llamaVersion, selfCommand } from '../../../core/assets.ts'
import { cacheDirectory } from '../../../core/extraction.ts'
import type { Device } from '../../devices/device.ts'
import type { Wrapper } from '../../sandbox/wrapper.ts'
import { type BackendName, type BackendReport, backendNames, reportMissing, reportTrial, useOf } from './backend.ts'
import { buildsAt, findBuilds, openOlderCuda } from './backend-packages.ts'
import { runTrial } from './backend-trial.ts'

export interface BackendSearch {
  /** The folder of GPU builds, which npm installed below its `node_modules`. */
  folder: string
  devices: readonly Pick<Device, 'id' | 'name' | 'kind' | 'totalBytes'>[]
  environment: Readonly<Record<string, string | undefined>>
  wrapper?: Wrapper
  /** Backends to try, in this order; default: all. */
  names?: readonly BackendName[]
  /** Whether to ignore cached results. */
  retest?: boolean
  /** Folder of cached results. */
  cache?: string
  deadlineMs?: (name: BackendName) => number
  /** The program that tries a backend; default: this program. */
  command?: (name: BackendName, folder: string | null) => readonly string[]
}

/** At first use the driver may compile code for the GPU, which can take minutes; the result is cached. */
const deadlines: Record<BackendName, number> = { cuda: 180_000, 'cuda-12': 600_000, vulkan: 180_000, cpu: 60_000 }

/**
 * Finds out which backends of llama.cpp work here: each loads a tiny model and computes a token in a separate process.
 * Results are cached until the program, the builds, the driver or the devices change. Yields each report as soon as it
 * is known, so that the caller can stop at the first backend that works.
 */
export async function* searchBackends(search: BackendSearch): AsyncGenerator<BackendReport, void, void> {
  const { folder, environment, names = backendNames } = search
  const cache = search.cache ?? cacheDirectory({ ...environment })
  const key = keyOf(search)
  const known = search.retest ? {} : readKnown(cache, key)
  const cards = search.devices.some(({ kind }) => kind === 'nvidia')
  for (const name of names) {
    const found = findBuilds(name, folder, llamaVersion)
    if (!found.ok) {
      yield reportMissing(name, { ...found, folder, version: llamaVersion, cards })
      continue
    }
    const before = known[name]
    if (before) {
      yield before
      continue
    }
    const buildFolder = name === 'cpu' ? null : name === 'cuda-12' ? openOlderCuda(folder, cache) : folder
    const run = await runTrial({
      argv: search.command?.(name, buildFolder) ?? ownCommand(name, buildFolder),
      env: trialEnvironment(environment, cache),
      deadlineMs: search.deadlineMs?.(name) ?? deadlines[name],
      ...(search.wrapper && { wrapper: search.wrapper }),
    })
    const report = reportTrial(name, run, buildFolder)
    known[name] = report
    keep(cache, key, known)
    yield report
  }
}

/** Returns the first backend that works, without trying further ones; undefined if none works. */
export async function firstBackend(search: BackendSearch): Promise<BackendReport | undefined> {
  for await (const report of searchBackends(search)) if (report.state === 'works') return report
  return undefined
}

function ownCommand(name: BackendName, folder: string | null): string[] {
  const { file, args } = selfCommand(['engine', 'try', '--gpu', useOf[name], ...(folder ? ['--backends', folder] : [])])
  return [file, ...args]
}

const inherited = /^(PATH|HOME|LD_LIBRARY_PATH|XDG_RUNTIME_DIR|NVIDIA_\w+|CUDA_\w+|VK_\w+|GGML_VK_VISIBLE_DEVICES)$/

/** Builds the environment from selected variables, as for an engine. */
function trialEnvironment(from: BackendSearch['environment'], cache: string): Record<string, string> {
  const kept = Object.entries(from).filter((entry): entry is [string, string] => inherited.test(entry[0]) && !!entry[1])
  return {
    ...Object.fromEntries(kept),
    LANG: 'C.UTF-8',
    OMP_WAIT_POLICY: 'PASSIVE',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    // Otherwise a crash waits for a debugger to print a backtrace.
    GGML_NO_BACKTRACE: '1',
    ...translatedCode(cache),
    ...selfCommand([]).env,
  }
}

/** Settings for the driver's cache of compiled code: the default cache is too small, and below HOME. */
export const translatedCode = (cache: string): Record<string, string> => ({
  CUDA_CACHE_PATH: join(cache, 'cuda'),
  CUDA_CACHE_MAXSIZE: String(4 * 2 ** 30),
})

/** A hash of everything that the result depends on. */
function keyOf({ folder, devices, environment }: BackendSearch): string {
  const text = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const names = (path: string) => {
    try {
      return readdirSync(path)
    } catch {
      return []
    }
  }
  const { LD_LIBRARY_PATH, CUDA_VISIBLE_DEVICES, GGML_VK_VISIBLE_DEVICES } = environment
  const of = {
    program: [build, llamaVersion],
    builds: [folder, ...buildsAt(folder)],
    drivers: [text('/sys/module/nvidia/version'), ...['/usr/share', '/etc'].map(at => names(`${at}/vulkan/icd.d`))],
    devices: devices.map(({ id, name, totalBytes }) => [id, name, totalBytes]),
    environment: [LD_LIBRARY_PATH, CUDA_VISIBLE_DEVICES, GGML_VK_VISIBLE_DEVICES],
  }
  return hash('sha256', JSON.stringify(of)).slice(0, 32)
}

type Known = Partial<Record<BackendName, BackendReport>>

function readKnown(cache: string, key: string): Known {
  try {
    const kept = JSON.parse(readFileSync(join(cache, 'backends.json'), 'utf8')) as { key?: string; reports?: Known }
    return kept.key === key ? (kept.reports ?? {}) : {}
  } catch {
    return {}
  }
}

/** Caches the reports. If the folder is not writable, every search tries the backends again. */
function keep(cache: string, key: string, reports: Known): void {
  const path = join(cache, 'backends.json')
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 })
    writeFileSync(`${path}.${process.pid}`, JSON.stringify({ key, reports }), { mode: 0o600 })
    renameSync(`${path}.${process.pid}`, path)
  } catch {
    // The reports are valid without the cache.
  }
}
