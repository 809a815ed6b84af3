import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, llamaVersion, selfCommand } from '../../../core/assets.ts'
import { cacheDirectory } from '../../../core/extraction.ts'
import type { Device } from '../../devices/device.ts'
import type { Wrapper } from '../../launcher/wrapper.ts'
import { type BackendName, type BackendReport, backendNames, reportMissing, reportTrial, useOf } from './backend.ts'
import { buildsAt, findBuilds, openOlderCuda } from './backend-packages.ts'
import { runTrial } from './backend-trial.ts'

export interface BackendSearch {
  /** Where the builds for GPUs lie, below node_modules as npm puts them there. */
  folder: string
  devices: readonly Pick<Device, 'id' | 'name' | 'kind' | 'totalBytes'>[]
  environment: Readonly<Record<string, string | undefined>>
  wrapper?: Wrapper
  /** Which, in this order; all of them when left out. */
  names?: readonly BackendName[]
  /** Whether what was found out before is not to be believed. */
  again?: boolean
  /** Where results are kept. */
  cache?: string
  deadlineMs?: (name: BackendName) => number
  /** The program that tries a backend; this one, when left out. */
  command?: (name: BackendName, folder: string | null) => readonly string[]
}

/** The first use on a card may have its code translated, for minutes where all of it must be; later ones find it kept. */
const deadlines: Record<BackendName, number> = { cuda: 180_000, 'cuda-12': 600_000, vulkan: 180_000, cpu: 60_000 }

/**
 * Finds out what llama.cpp can compute on here: each backend loads a tiny model and computes a token, in a process of
 * its own. A result is kept until the program, the builds, the driver or the devices are others. Yields each report
 * when it is there, so that whoever only needs the first that works can stop.
 */
export async function* searchBackends(search: BackendSearch): AsyncGenerator<BackendReport, void, void> {
  const { folder, environment, names = backendNames } = search
  const cache = search.cache ?? cacheDirectory({ ...environment })
  const key = keyOf(search)
  const known = search.again ? {} : readKnown(cache, key)
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
    const place = name === 'cpu' ? null : name === 'cuda-12' ? openOlderCuda(folder, cache) : folder
    const run = await runTrial({
      argv: search.command?.(name, place) ?? ownCommand(name, place),
      env: trialEnvironment(environment, cache),
      deadlineMs: search.deadlineMs?.(name) ?? deadlines[name],
      ...(search.wrapper && { wrapper: search.wrapper }),
    })
    const report = reportTrial(name, run, place)
    known[name] = report
    keep(cache, key, known)
    yield report
  }
}

/** The first that works, nothing more than needed being tried; undefined when none does. */
export async function firstBackend(search: BackendSearch): Promise<BackendReport | undefined> {
  for await (const report of searchBackends(search)) if (report.state === 'works') return report
  return undefined
}

function ownCommand(name: BackendName, folder: string | null): string[] {
  const { file, args } = selfCommand(['engine', 'try', '--gpu', useOf[name], ...(folder ? ['--backends', folder] : [])])
  return [file, ...args]
}

const passed = /^(PATH|HOME|LD_LIBRARY_PATH|XDG_RUNTIME_DIR|NVIDIA_\w+|CUDA_\w+|VK_\w+|GGML_VK_VISIBLE_DEVICES)$/

/** Built, not inherited, as that of an engine is. */
function trialEnvironment(from: BackendSearch['environment'], cache: string): Record<string, string> {
  const kept = Object.entries(from).filter((entry): entry is [string, string] => passed.test(entry[0]) && !!entry[1])
  return {
    ...Object.fromEntries(kept),
    LANG: 'C.UTF-8',
    OMP_WAIT_POLICY: 'PASSIVE',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    // Without it a crash waits for a debugger to say where it was.
    GGML_NO_BACKTRACE: '1',
    ...translatedCode(cache),
    ...selfCommand([]).env,
  }
}

/** Where the driver keeps code that it has translated for a card: by default too little of it, below a HOME. */
export const translatedCode = (cache: string): Record<string, string> => ({
  CUDA_CACHE_PATH: join(cache, 'cuda'),
  CUDA_CACHE_MAXSIZE: String(4 * 2 ** 30),
})

/** Whatever the result depends on. */
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

/** Where nothing can be written it is found out anew each time. */
function keep(cache: string, key: string, reports: Known): void {
  const path = join(cache, 'backends.json')
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 })
    writeFileSync(`${path}.${process.pid}`, JSON.stringify({ key, reports }), { mode: 0o600 })
    renameSync(`${path}.${process.pid}`, path)
  } catch {
    // The result stands all the same.
  }
}
