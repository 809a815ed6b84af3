import { driverAdvice, type LinuxSystem, vulkanAdvice } from '../../devices/driver-advice.ts'
import type { BusCard, GraphicsCards } from '../../devices/graphics-cards.ts'
import type { GpuBackend } from './gpu-packages.ts'

/**
 * The backend that suits a machine and why, or what is missing, as sentences; `why` has no full stop. `none`: there is no
 * card at all.
 */
export type BackendChoice =
  | { backend: GpuBackend; why: string; advice: string | null }
  | { backend: null; none: boolean; why: string; advice: string | null }

/**
 * What each CUDA build contains: machine code for these compute capabilities, and intermediate code that the driver
 * compiles for all others from `least` on. Machine code runs with every driver of the same CUDA major version,
 * intermediate code needs the CUDA version of the build. Read from the libraries of 3.22.1.
 */
const cudaBuilds = [
  { backend: 'cuda', cuda: '13', code: [8.6, 8.9, 12, 12.1], least: 7.5, codeDriver: 580, compiledDriver: 590 },
  { backend: 'cuda-12', cuda: '12', code: [8.6, 8.9], least: 5, codeDriver: 525, compiledDriver: 550 },
] as const

/** Cards from this capability on are unknown to the cuBLAS of CUDA 12.4. */
const blackwell = 10

const count = (n: number, of: string) => `${n} ${of}${n === 1 ? '' : 's'}`

/** The n of GLIBCXX_3.4.n that the builds need: that of GCC 12. Read from the libraries of 3.22.1. */
const neededCxx = 30

/** Chooses the backend for the cards of a machine. `cxxLibrary`: see `readCxxLibrary`. Pure. */
export function chooseGpuBackend(
  cards: GraphicsCards,
  system: LinuxSystem & { cxxLibrary?: number | null },
  architecture: string,
): BackendChoice {
  const { nvidia, driver, fault, bus, renders } = cards
  const has = (maker: BusCard['maker']) => bus.some(card => card.maker === maker)
  const missing = (why: string, advice: string | null): BackendChoice => ({ backend: null, none: false, why, advice })
  if (nvidia.length === 0 && bus.length === 0 && !renders && fault === null)
    return { backend: null, none: true, why: 'There is no GPU in this machine', advice: null }
  if (architecture !== 'x64')
    return missing(
      `llama.cpp has no published build for GPUs on ${architecture}`,
      'To use the GPU, build llama.cpp on this machine and set "engine: llama-server" in infer.yaml.',
    )
  const { cxxLibrary: cxx = null } = system
  if (cxx !== null && cxx < neededCxx)
    return missing(
      `The builds for GPUs need a newer C++ library than this system has (GLIBCXX_3.4.${neededCxx}, here GLIBCXX_3.4.${cxx})`,
      'Use Debian 12, Ubuntu 22.04, RHEL 10 or a later system, or build llama.cpp on this machine and set "engine: llama-server" in infer.yaml.',
    )
  if (nvidia.length > 0) {
    const names = [...new Set(nvidia.map(({ name }) => name))].join(', ')
    const withDriver = `${count(nvidia.length, 'card')} (${names}) with driver ${driver ?? 'of unknown version'}`
    const fits = cudaBuilds.find(one => nvidia.every(({ capability }) => runs(one, capability, driver)))
    if (fits) return { backend: fits.backend, why: `CUDA ${fits.cuda} for ${withDriver}`, advice: null }
    const needed = driverFor(nvidia.map(({ capability }) => capability))
    const advice = `CUDA needs driver ${needed} or newer here. ${driverAdvice(system)}`
    return { backend: 'vulkan', why: `Vulkan for ${withDriver}`, advice }
  }
  if (fault !== null) return missing(fault.replace(/\.$/, ''), 'Run nvidia-smi and repair what it reports.')
  if (has('nvidia')) return missing('There is an NVIDIA card, and its driver is not installed', driverAdvice(system))
  const makers = [has('amd') ? 'AMD' : [], has('intel') ? 'Intel' : []].flat().join(' and ')
  if (renders)
    return {
      backend: 'vulkan',
      why: `Vulkan for the card ${makers === '' ? 'in /dev/dri' : `of ${makers}`}`,
      advice: null,
    }
  return missing(
    `There is a card of ${makers}, and no driver offers it in /dev/dri`,
    system.isContainer ? 'Start the container with the option --device /dev/dri.' : vulkanAdvice(system),
  )
}

function runs(build: (typeof cudaBuilds)[number], capability: number | null, driver: number | null): boolean {
  if (driver === null) return false
  if (build.backend === 'cuda-12' && (capability ?? 0) >= blackwell) return false
  if (capability !== null && (build.code as readonly number[]).includes(capability)) return driver >= build.codeDriver
  return (capability ?? build.least) >= build.least && driver >= build.compiledDriver
}

/** The oldest driver with which one of the builds runs on all of these cards. */
function driverFor(capabilities: readonly (number | null)[]): number {
  const drivers = cudaBuilds
    .flatMap(({ codeDriver, compiledDriver }) => [codeDriver, compiledDriver])
    .toSorted((a, b) => a - b)
  return drivers.find(driver => cudaBuilds.some(one => capabilities.every(each => runs(one, each, driver)))) ?? 590
}
