import { hash } from 'node:crypto'
import { mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { build, llamaVersion, selfCommand } from '../../../core/assets.ts'
import { cacheDirectory } from '../../../core/extraction.ts'
import { optionalJson, optionalNames, optionalText } from '../../../core/optional-file.ts'
import type { Device } from '../../devices/device.ts'
import { driverVariables } from '../../launcher/environment.ts'
import { exitStatus, noWrapper, type Wrapper, wrapCommand } from '../../sandbox/wrapper.ts'
import {
  type BackendName,
  type BackendReport,
  backendNames,
  noVulkanDriver,
  reportMissing,
  reportTrial,
  type TrialRun,
  useOf,
} from './backend.ts'
import { buildsAt, findBuilds, openOlderCuda } from './backend-packages.ts'

export interface BackendSearch {
  /** The folder of GPU builds, which are below its `node_modules`. */
  folder: string
  devices: readonly Pick<Device, 'id' | 'name' | 'kind' | 'totalBytes' | 'cudaId'>[]
  environment: Readonly<Record<string, string | undefined>>
  wrapper?: Wrapper
  /** Backends to try, in this order; default: all. */
  names?: readonly BackendName[]
  /** Whether to ignore cached results: all of them, or those of backends that failed. */
  retest?: boolean | 'failures'
  /** Folder of cached results. */
  cache?: string
  /** The clock, in Unix milliseconds. */
  now?: () => number
  deadlineMs?: (name: BackendName) => number
  /** The program that tries a backend; default: this program. */
  command?: (name: BackendName, folder: string | null) => readonly string[]
}

/** At first use the driver may compile code for the GPU, which can take minutes; the result is cached. */
const deadlines: Record<BackendName, number> = { cuda: 180_000, 'cuda-12': 600_000, vulkan: 180_000, cpu: 60_000 }

/**
 * Finds out which backends of llama.cpp work here: each loads a tiny model and computes a token in a separate process.
 * Results are cached until the program, the builds, the driver or the devices change; a failure for an hour at most,
 * because its cause may be none of these, for example a full card. Yields each report as soon as it is known, so that the
 * caller can stop at the first backend that works.
 */
export async function* searchBackends(search: BackendSearch): AsyncGenerator<BackendReport, void, void> {
  const { folder, environment, names = backendNames, now = Date.now } = search
  const cache = search.cache ?? cacheDirectory({ ...environment })
  const key = cacheKey(search)
  const known: Known = search.retest === true ? {} : ((readCached(cache, cacheFile, key) as Known | undefined) ?? {})
  const has = (name: BackendName) =>
    search.devices.some(({ kind, cudaId }) => (name === 'vulkan' ? kind !== 'cpu' : cudaId !== null))
  for (const name of names) {
    const found = findBuilds(name, folder, llamaVersion)
    if (!found.ok) {
      yield reportMissing(name, { ...found, cards: has(name) })
      continue
    }
    const before = known[name]
    if (before && isTrusted(before, search.retest, now())) {
      yield before.report
      continue
    }
    const buildFolder = name === 'cpu' ? null : name === 'cuda-12' ? openOlderCuda(folder, cache) : folder
    const trial = {
      argv: search.command?.(name, buildFolder) ?? ownCommand(name, buildFolder),
      env: trialEnvironment(environment, cache),
      deadlineMs: search.deadlineMs?.(name) ?? deadlines[name],
      wrapper: search.wrapper,
    }
    const run = await runTrial(trial)
    const report = reportTrial(name, (await unknownDevice(trial, run)) ?? run, buildFolder)
    known[name] = { report, triedAt: now() }
    keepCached(cache, cacheFile, key, known)
    yield report
  }
}

/**
 * The result of a trial that failed because GGML_VK_VISIBLE_DEVICES names a device that does not exist, with this reason:
 * the library reports the same as without a driver, but starts if no device is named. Otherwise undefined.
 */
async function unknownDevice(trial: TrialOptions, run: TrialRun): Promise<TrialRun | undefined> {
  const named = trial.env.GGML_VK_VISIBLE_DEVICES
  if (!named || !run.stderr.includes(noVulkanDriver)) return undefined
  const { status } = await runTrial({ ...trial, env: { ...trial.env, GGML_VK_VISIBLE_DEVICES: '' } })
  return status === '0' ? { ...run, stderr: `GGML_VK_VISIBLE_DEVICES is '${named}': no such device` } : undefined
}

function ownCommand(name: BackendName, folder: string | null): string[] {
  const { file, args } = selfCommand(['engine', 'try', '--gpu', useOf[name], ...(folder ? ['--backends', folder] : [])])
  return [file, ...args]
}

const inherited = /^(PATH|HOME|XDG_RUNTIME_DIR|CUDA_\w+)$/

/** Builds the environment from selected variables, as for an engine. */
export function trialEnvironment(from: BackendSearch['environment'], cache: string): Record<string, string> {
  const kept = Object.entries(from).filter(
    (entry): entry is [string, string] =>
      (inherited.test(entry[0]) || driverVariables.test(entry[0])) && entry[1] !== undefined,
  )
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

/**
 * Settings for the drivers' caches of compiled code: the default caches are below HOME, where each model would compile its
 * own, and that of CUDA is too small.
 */
export const translatedCode = (cache: string): Record<string, string> => ({
  MESA_SHADER_CACHE_DIR: join(cache, 'mesa'),
  __GL_SHADER_DISK_CACHE_PATH: join(cache, 'nvidia'),
  CUDA_CACHE_PATH: join(cache, 'cuda'),
  CUDA_CACHE_MAXSIZE: String(4 * 2 ** 30),
})

/** A hash of everything that the results depend on: of all trials, or without `devices` of the search for devices. */
export function cacheKey({
  folder,
  devices,
  environment,
}: Pick<BackendSearch, 'folder' | 'environment'> & Partial<Pick<BackendSearch, 'devices'>>): string {
  const of = {
    program: [build, llamaVersion],
    builds: [folder, ...buildsAt(folder)],
    drivers: driverFacts(environment),
    devices: devices?.map(({ id, name, totalBytes }) => [id, name, totalBytes]),
  }
  return hash('sha256', JSON.stringify(of)).slice(0, 32)
}

/** What tells that a driver was installed, replaced or chosen: versions, manifests of Vulkan drivers, variables. */
function driverFacts(environment: BackendSearch['environment']): unknown[] {
  const chosen = Object.entries(environment).filter(
    ([name]) => driverVariables.test(name) || name === 'CUDA_VISIBLE_DEVICES',
  )
  const named = chosen.flatMap(([name, value]) => (/^VK_.*FILE/.test(name) ? (value ?? '').split(':') : []))
  const folders = ['/usr/share', '/usr/local/share', '/etc'].map(at => `${at}/vulkan/icd.d`)
  const manifests = [...named, ...folders.flatMap(at => optionalNames(at).map(name => join(at, name)))]
  return [
    optionalText('/sys/module/nvidia/version') ?? '',
    optionalNames('/dev/dri').toSorted(),
    chosen.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    manifests.map(path => [path, statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0]),
  ]
}

interface CachedTrial {
  report: BackendReport
  /** Unix milliseconds. */
  triedAt: number
}
type Known = Partial<Record<BackendName, CachedTrial>>
const cacheFile = 'backends.json'

/** How long a backend that failed is not tried again. */
const failureKeptMs = 60 * 60_000

function isTrusted({ report, triedAt }: CachedTrial, retest: BackendSearch['retest'], now: number): boolean {
  if (report.state !== 'fails') return true
  return retest !== 'failures' && now >= triedAt && now - triedAt < failureKeptMs
}

/** Returns what was cached under this key; undefined if there is nothing. */
export const readCached = (cache: string, file: string, key: string): unknown => {
  const kept = optionalJson(join(cache, file)) as { key?: string; reports?: unknown } | null | undefined
  return kept?.key === key ? kept.reports : undefined
}

/** Caches results in place of those of another key. If the folder is not writable, every search tries again. */
export function keepCached(cache: string, file: string, key: string, reports: unknown): void {
  const path = join(cache, file)
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 })
    writeFileSync(`${path}.${process.pid}`, JSON.stringify({ key, reports }), { mode: 0o600 })
    renameSync(`${path}.${process.pid}`, path)
  } catch {
    // The reports are valid without the cache.
  }
}

export interface TrialOptions {
  /** Program and arguments that try the backend, print a line of JSON and end. */
  argv: readonly string[]
  env: Record<string, string>
  deadlineMs: number
  /** Ends the trial, and the test process that llama.cpp starts, together with this process. */
  wrapper?: Wrapper
}

/** Runs a trial in a process that may crash or hang, and ends that process. Never throws. */
export async function runTrial({ argv, env, deadlineMs, wrapper = noWrapper }: TrialOptions): Promise<TrialRun> {
  const { file, args } = wrapCommand(wrapper, argv)
  const started = performance.now()
  const child = execa(file, args, {
    env,
    extendEnv: false,
    stdin: 'ignore',
    reject: false,
    detached: true,
    cleanup: false,
    maxBuffer: 32 << 20,
  })
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    if (child.pid !== undefined) killGroup(child.pid)
  }, deadlineMs)
  const { exitCode, signal, stdout, stderr, code } = await child
  clearTimeout(timer)
  // Its child processes have closed the pipes but may still be running.
  if (child.pid !== undefined) killGroup(child.pid)
  return {
    status:
      exitCode === undefined && !signal
        ? String(code)
        : exitStatus(wrapper, exitCode ?? null, signal ?? null, constants.signals),
    timedOut,
    stdout,
    stderr,
    ms: performance.now() - started,
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The whole group has already exited.
  }
}

/** The folder of GPU builds: INFER_BACKENDS_DIR, or `backends` in the data directory. */
export const backendsFolder = (dataDir: string, environment: Readonly<Record<string, string | undefined>>): string =>
  environment.INFER_BACKENDS_DIR || join(dataDir, 'backends')
