import { jsonOf } from '../../../core/json.ts'
import { driverAdvice, readLinuxSystem, vulkanAdvice } from '../../devices/driver-advice.ts'
import type { GpuUse } from './options.ts'

/**
 * The backends of llama.cpp. `cuda-12` is the CUDA build for older drivers: the main build contains machine code for
 * few GPUs and otherwise PTX, which only drivers from 590 on can compile. On an H100 with driver 580, for example, it
 * loads but crashes at the first computation, so a trial computation is needed.
 */
export const backendNames = ['cuda', 'cuda-12', 'vulkan', 'cpu'] as const
export type BackendName = (typeof backendNames)[number]

export interface BackendReport {
  name: BackendName
  state: 'works' | 'fails' | 'missing'
  /** The finding, as a sentence without full stop. */
  detail: string
  /** What the user can do; null if nothing is needed. */
  advice: string | null
  /** The folder of its builds, for the engine; null for the CPU and if there are none. */
  folder: string | null
}

/** The npm packages with its builds. The CPU build is part of the program. */
export const packagesOf: Record<BackendName, readonly string[]> = {
  cuda: ['@node-llama-cpp/linux-x64-cuda'],
  'cuda-12': ['@node-llama-cpp/linux-x64-cuda', '@node-llama-cpp/linux-x64-cuda-ext'],
  vulkan: ['@node-llama-cpp/linux-x64-vulkan'],
  cpu: [],
}

/** The value of the engine's `--gpu` option. */
export const useOf: Record<BackendName, Exclude<GpuUse, 'auto'>> = {
  cuda: 'cuda',
  'cuda-12': 'cuda',
  vulkan: 'vulkan',
  cpu: 'off',
}

export interface TrialRun {
  /** Exit code, or name of the signal that ended it. */
  status: string
  timedOut: boolean
  stdout: string
  stderr: string
  ms: number
}

/** Why a Vulkan backend that can be loaded does not start. The library does not say it. */
export const noVulkanDriver = 'the Vulkan loader has found no driver that works'

/** Why a CUDA backend that can be loaded does not start. The library does not say it either. */
export const noCudaDriver = 'the NVIDIA driver does not run this build, or finds no card'

/** Interprets the result of a trial process. */
export function reportTrial(name: BackendName, run: TrialRun, folder: string | null): BackendReport {
  const seconds = (run.ms / 1000).toFixed(1)
  const fails = (detail: string): BackendReport => ({
    name,
    state: 'fails',
    detail,
    advice: adviceFor(name, run),
    folder,
  })
  const reason = errorLine(run.stderr)
  if (run.timedOut) return fails(`it did not finish within ${seconds} s and was killed${reason}`)
  const trial = parseTrial(run.stdout)
  if (run.status !== '0' || !trial)
    return fails(`${/^\d+$/.test(run.status) ? 'it does not start' : `it crashed (${run.status})`}${reason}`)
  if (name !== 'cpu' && trial.devices.length === 0) return fails('it starts, but finds no device to compute on')
  const on = name === 'cpu' ? 'the processor' : trial.devices.join(', ')
  const detail = `computes on ${on} (llama.cpp ${trial.release}, tried in ${seconds} s)`
  return { name, state: 'works', detail, advice: null, folder }
}

function parseTrial(stdout: string): { release: string; devices: string[] } | undefined {
  const { release, devices } = (jsonOf(stdout.trim().split('\n').at(-1)!) ?? {}) as Record<string, unknown>
  return typeof release === 'string' && Array.isArray(devices) ? { release, devices: devices.map(String) } : undefined
}

/** The last line that mentions an error, else the last line. */
function errorLine(stderr: string): string {
  // Those of the library speak of its own second attempts.
  const lines = stderr
    .split('\n')
    .map(text => text.replaceAll(/\p{Cc}/gu, ' ').trim())
    .filter(text => !text.startsWith('[node-llama-cpp]'))
  const line =
    lines.findLast(text => /(error|fail\w*|cannot \w+)\b.*: \S|cannot open/i.test(text)) ?? lines.findLast(Boolean)
  return line ? `: ${line.replaceAll(/^Error: |\.$/g, '').slice(0, 300)}` : ''
}

/** CUDA's error messages for code compiled for another GPU or driver. */
const incompatibleCode = /unsupported toolchain|no kernel image|PTX|error 222|error 209/i

const setup = (name: BackendName): string => `infer engine setup gpu --backend ${name}`

function adviceFor(name: BackendName, { stderr, status, timedOut }: TrialRun): string {
  if (name === 'cpu') return 'Other engines still work. Please report this with the message above.'
  const library = /(lib(?:cudart|cublas|cublasLt|cuda|nvidia|vulkan)[\w.]*): cannot open shared object/.exec(
    stderr,
  )?.[1]
  if (/^lib(cuda\.|nvidia)/.test(library ?? ''))
    return `${library} is part of the NVIDIA driver. ${driverAdvice(readLinuxSystem())}`
  if (library?.startsWith('libvulkan.')) return vulkanAdvice(readLinuxSystem())
  if (library) return `${library} is missing. ${setup(name)} brings it.`
  if (/GLIBC(XX)?_[\d.]+' not found/.test(stderr))
    return 'The build needs a newer C++ library than this system has: that of Debian 12, Ubuntu 22.04, RHEL 10 or later. Or build llama.cpp here and set "engine: llama-server" in infer.yaml.'
  if (name === 'cuda')
    return incompatibleCode.test(stderr) || stderr.includes(noCudaDriver)
      ? `The driver is too old for this build: update it to 590 or newer, or use the build for older drivers: ${setup('cuda-12')}`
      : `Use the build for older drivers, or Vulkan: ${setup('cuda-12')}`
  if (name === 'cuda-12')
    return `It needs driver 550 or newer, or 525 on cards such as RTX 3090 and 4090. Or use Vulkan: ${setup('vulkan')}`
  if (/GGML_VK_VISIBLE_DEVICES is/.test(stderr))
    return 'Correct or remove GGML_VK_VISIBLE_DEVICES: it counts the devices of all Vulkan drivers, from 0.'
  if (status.startsWith('SIG') && !timedOut)
    return 'The Vulkan driver has crashed: update it, or name another one in VK_DRIVER_FILES.'
  return `${vulkanAdvice(readLinuxSystem())} nvidia-smi or vulkaninfo must see it.`
}

/** The report on a backend whose builds are missing or unusable. Pure. */
export function reportMissing(
  name: BackendName,
  { why, instead, cards }: { why: string; instead?: string; cards: boolean },
): BackendReport {
  return {
    name,
    state: 'missing',
    detail: cards || name === 'vulkan' ? why : `${why}; there is no NVIDIA GPU that could use it`,
    advice: cards ? (instead ?? setup(name)) : null,
    folder: null,
  }
}

/** The first backend that works, in order of preference. */
export const bestOf = (reports: readonly BackendReport[], among: readonly BackendName[] = backendNames) =>
  reports.find(({ name, state }) => state === 'works' && among.includes(name))
