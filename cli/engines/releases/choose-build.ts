import type { GraphicsCards } from '../../../gpu/devices/graphics-cards.ts'
import type { Build, ReleaseBackend, ReleaseKind } from './release-kinds.ts'

/** What decides which build runs on a machine. */
export interface ReleaseMachine {
  /** As Node names it. */
  architecture: string
  cards: GraphicsCards
  /** The version of ROCm that is installed, such as 7.2; null without it. */
  rocm: string | null
}

/** The files to install and why, or what is missing. `why` has no full stop; `advice` is a sentence. */
export type BuildChoice =
  | { build: Build; libraries: Build | null; why: string; advice: string | null }
  | { build: null; why: string; advice: string }

/** Drivers of NVIDIA for Linux from which a version of CUDA runs. Source: the release notes of CUDA. */
const drivers: Readonly<Record<string, number>> = {
  '12.4': 550,
  '12.5': 555,
  '12.6': 560,
  '12.8': 570,
  '12.9': 575,
  '13.0': 580,
  '13.1': 590,
}

/**
 * What builds of llama.cpp and stable-diffusion.cpp for a major version of CUDA contain: machine code for these compute
 * capabilities, which runs with every driver of that major version, and intermediate code for all from `least` on, which
 * needs a driver for the very version. Source: CMakeLists.txt of ggml's CUDA backend, as of October 2026.
 */
const cudaCode: Readonly<Record<string, { code: readonly number[]; least: number; driver: number }>> = {
  '12': { code: [8.6, 8.9, 12], least: 5, driver: 525 },
  '13': { code: [8.6, 8.9, 12, 12.1], least: 7.5, driver: 580 },
}

function runsCuda({ backendVersion }: Build, { nvidia, driver }: GraphicsCards): boolean {
  const about = cudaCode[backendVersion.split('.')[0]!]
  if (!about || driver === null || driver < about.driver) return false
  const compiles = driver >= (drivers[backendVersion] ?? Number.POSITIVE_INFINITY)
  return nvidia.every(
    ({ capability }) =>
      capability !== null && (about.code.includes(capability) || (compiles && capability >= about.least)),
  )
}

const major = (version: string): string => version.split('.')[0]!

const newestFirst = (one: Build, other: Build): number =>
  other.backendVersion.localeCompare(one.backendVersion, 'en', { numeric: true })

/**
 * Chooses the build of a release for a machine, or one of the backend `wanted`, by the names of its files. Pure.
 */
export function chooseBuild(
  kind: ReleaseKind,
  { version, files }: { version: string; files: readonly string[] },
  machine: ReleaseMachine,
  wanted: ReleaseBackend | 'auto',
): BuildChoice {
  const all = files.flatMap(file => kind.build(file) ?? []).toSorted(newestFirst)
  const builds = all.filter(({ architecture }) => architecture === machine.architecture)
  const own = `Build ${kind.title} on this machine, so that '${kind.name}' is on the PATH.`
  const what = `${kind.title} ${version}`
  if (builds.length === 0) {
    const others = [...new Set(all.map(({ architecture }) => architecture))].toSorted().join(' and ')
    const has = others === '' ? 'no program for Linux' : `programs for Linux on ${others} only`
    return { build: null, why: `${what} has ${has}, and this machine is ${machine.architecture}`, advice: own }
  }
  const chosen = (build: Build, why: string, advice: string | null = null): BuildChoice => {
    const libraries = files
      .flatMap(file => kind.libraries?.(file) ?? [])
      .find(
        ({ backend, backendVersion, architecture }) =>
          backend === build.backend && backendVersion === build.backendVersion && architecture === build.architecture,
      )
    return { build, libraries: libraries ?? null, why, advice }
  }
  const suitable = suitableBuilds(builds, machine)
  if (wanted !== 'auto') {
    const those = builds.filter(({ backend }) => backend === wanted)
    // The oldest version of CUDA or ROCm needs the oldest driver.
    const build = suitable.builds.find(({ backend }) => backend === wanted) ?? those.at(-1)
    if (build) return chosen(build, `This is the build for ${textOf(build)}`)
    const known = [...new Set(builds.map(({ backend }) => backend))].toSorted().join(', ')
    return {
      build: null,
      why: `${what} has no build for ${wanted} on ${machine.architecture}; it has: ${known}`,
      advice: `Choose one of them with --backend. ${own}`,
    }
  }
  const [build] = suitable.builds
  if (build) return chosen(build, `The build for ${textOf(build)} suits ${suitable.of}`, suitable.advice)
  const forProcessor = builds.find(({ backend }) => backend === 'cpu')
  if (forProcessor)
    return chosen(
      forProcessor,
      suitable.of === null
        ? 'There is no GPU that a build could use, so it is the one for the processor'
        : `No build suits ${suitable.of}, so it is the one for the processor`,
      suitable.advice,
    )
  return { build: null, why: `${what} has no build that suits this machine`, advice: own }
}

const names: Readonly<Record<ReleaseBackend, string>> = {
  cpu: 'the processor',
  cuda: 'CUDA',
  rocm: 'ROCm',
  vulkan: 'Vulkan',
}

/** The backend of a build for people, such as `CUDA 12.8`. */
export const textOf = ({ backend, backendVersion }: Pick<Build, 'backend' | 'backendVersion'>): string =>
  `${names[backend]} ${backendVersion}`.trim()

/** The builds that use the GPUs, the best one first, and for which GPUs; `of` is null without one. */
function suitableBuilds(
  builds: readonly Build[],
  { cards, rocm }: ReleaseMachine,
): { builds: readonly Build[]; of: string | null; advice: string | null } {
  const { nvidia, driver, bus, renders } = cards
  const ofBackend = (backend: ReleaseBackend) => builds.filter(one => one.backend === backend)
  if (nvidia.length > 0) {
    const named = [...new Set(nvidia.map(({ name }) => name))].join(', ')
    const of = `${nvidia.length} ${nvidia.length === 1 ? 'card' : 'cards'} (${named}) with driver ${driver ?? 'of unknown version'}`
    const cuda = ofBackend('cuda').filter(build => runsCuda(build, cards))
    if (cuda.length > 0) return { builds: cuda, of, advice: null }
    const advice =
      ofBackend('cuda').length > 0
        ? 'The builds for CUDA need a newer driver. To try one nevertheless, add --backend cuda.'
        : 'This release has no build for CUDA. A program that you build with CUDA is used when it is on the PATH.'
    // Only the Vulkan backend of the built-in engine tells the numbers by which an engine sees its own of several cards.
    return { builds: nvidia.length === 1 ? ofBackend('vulkan') : [], of, advice }
  }
  if (cards.fault !== null) return { builds: [], of: 'the cards of NVIDIA', advice: cards.fault }
  const isAmd = bus.some(({ maker }) => maker === 'amd')
  const of = isAmd ? 'the card of AMD' : renders ? 'the card in /dev/dri' : null
  const forRocm = isAmd && rocm !== null ? ofBackend('rocm').filter(one => runsRocm(one, rocm)) : []
  if (forRocm.length > 0) return { builds: forRocm, of: `${of} with ROCm ${rocm}`, advice: null }
  if (renders) return { builds: ofBackend('vulkan'), of, advice: null }
  const advice = bus.some(({ integrated }) => !integrated)
    ? 'There is a card, and no driver offers it in /dev/dri. See: infer doctor'
    : null
  return { builds: [], of: null, advice }
}

/** ROCm keeps its interfaces within a major version. */
const runsRocm = ({ backendVersion }: Build, rocm: string): boolean => major(backendVersion) === major(rocm)
