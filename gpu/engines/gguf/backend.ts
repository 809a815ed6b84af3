import type { GpuUse } from './options.ts'

/**
 * What llama.cpp can compute on. `cuda-12` is the CUDA build for older drivers: the main one carries code for few cards
 * and otherwise an intermediate form that only drivers from 590 on can translate, so on an H100 with driver 580, say,
 * it loads and dies of its first computation, which is how it is found out.
 */
export const backendNames = ['cuda', 'cuda-12', 'vulkan', 'cpu'] as const
export type BackendName = (typeof backendNames)[number]

/** What has been found out about one backend. */
export interface BackendReport {
  name: BackendName
  state: 'works' | 'fails' | 'missing'
  /** What is so, as a sentence without its full stop. */
  detail: string
  /** What to do about it; null when there is nothing to do. */
  advice: string | null
  /** Where its builds lie, for the engine; null for the processor and where there are none. */
  folder: string | null
}

/** The npm packages that hold its builds. None are needed for the processor, which is part of the program. */
export const packagesOf: Record<BackendName, readonly string[]> = {
  cuda: ['@node-llama-cpp/linux-x64-cuda'],
  'cuda-12': ['@node-llama-cpp/linux-x64-cuda', '@node-llama-cpp/linux-x64-cuda-ext'],
  vulkan: ['@node-llama-cpp/linux-x64-vulkan'],
  cpu: [],
}

/** What the engine is told to use for it. */
export const useOf: Record<BackendName, Exclude<GpuUse, 'auto'>> = {
  cuda: 'cuda',
  'cuda-12': 'cuda',
  vulkan: 'vulkan',
  cpu: 'off',
}

/** The command that installs the builds. */
export const installation = (name: BackendName, folder: string, version: string): string =>
  `npm install --no-save --prefix ${folder} ${packagesOf[name].map(one => `${one}@${version}`).join(' ')}`

/** How a trial ended. */
export interface TrialRun {
  /** `0`, another number, or the name of the signal that ended it. */
  status: string
  timedOut: boolean
  stdout: string
  stderr: string
  ms: number
}

/** What a trial in a process of its own means. Pure. */
export function reportTrial(name: BackendName, run: TrialRun, folder: string | null): BackendReport {
  const seconds = (run.ms / 1000).toFixed(1)
  const is = (state: BackendReport['state'], detail: string, advice: string | null): BackendReport => ({
    name,
    state,
    detail,
    advice,
    folder,
  })
  const reason = lastWords(run.stderr)
  if (run.timedOut)
    return is('fails', `it gave no answer within ${seconds} s and was ended${reason}`, adviceFor(name, run))
  const trial = parseTrial(run.stdout)
  if (run.status !== '0' || !trial)
    return is(
      'fails',
      `${/^\d+$/.test(run.status) ? 'it does not start' : `it crashed (${run.status})`}${reason}`,
      adviceFor(name, run),
    )
  if (name !== 'cpu' && trial.devices.length === 0)
    return is('fails', 'it starts, but finds no device to compute on', adviceFor(name, run))
  const on = name === 'cpu' ? 'the processor' : trial.devices.join(', ')
  return is('works', `computes on ${on} (llama.cpp ${trial.release}, tried in ${seconds} s)`, null)
}

function parseTrial(stdout: string): { release: string; devices: string[] } | undefined {
  try {
    const { release, devices } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, unknown>
    if (typeof release !== 'string' || !Array.isArray(devices)) return undefined
    return { release, devices: devices.map(String) }
  } catch {
    return undefined
  }
}

/** The last line that speaks of an error, for much else is said around it; or the last one at all. */
function lastWords(stderr: string): string {
  const lines = stderr.split('\n').map(text => text.replaceAll(/\p{Cc}/gu, ' ').trim())
  const line =
    lines.findLast(text => /(error|fail\w*|cannot \w+)\b.*: \S|cannot open/i.test(text)) ?? lines.findLast(Boolean)
  return line
    ? `: ${line
        .replace(/^Error: /, '')
        .replace(/\.$/, '')
        .slice(0, 300)}`
    : ''
}

/** CUDA's words for code that was made for another card or another driver. */
const madeForAnother = /unsupported toolchain|no kernel image|PTX|error 222|error 209/i

function adviceFor(name: BackendName, { stderr }: TrialRun): string {
  if (name === 'cpu') return 'Engines of other kinds still work; report this with the message above.'
  const library = /(lib(?:cudart|cublas|cublasLt|cuda|vulkan)[\w.]*): cannot open shared object/.exec(stderr)?.[1]
  if (library) return `${library} is missing: install what holds it, or name its folder in LD_LIBRARY_PATH.`
  if (name === 'cuda')
    return madeForAnother.test(stderr)
      ? 'The driver is too old for this build: update it to 590 or newer, or install the CUDA 12 libraries and build beside it.'
      : 'Install the CUDA 12 build beside it, which suits older drivers, or the Vulkan one.'
  if (name === 'cuda-12') return 'It needs libcudart.so.12 and libcublas.so.12, and a driver of CUDA 12 or newer.'
  return 'Install the Vulkan driver of the card; nvidia-smi or vulkaninfo must see it.'
}

/** The report on a backend whose builds are not there, or not as they must be. Pure. */
export function reportMissing(
  name: BackendName,
  {
    why,
    instead,
    folder,
    version,
    cards,
  }: { why: string; instead?: string; folder: string; version: string; cards: boolean },
): BackendReport {
  return {
    name,
    state: 'missing',
    detail: cards || name === 'vulkan' ? why : `${why}; there is no NVIDIA card that could use it`,
    advice: cards ? (instead ?? installation(name, folder, version)) : null,
    folder: null,
  }
}

/** The first that works, in the order of preference. */
export const bestOf = (reports: readonly BackendReport[], among: readonly BackendName[] = backendNames) =>
  reports.find(({ name, state }) => state === 'works' && among.includes(name))
