import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { llamaVersion } from '../../core/assets.ts'
import { hostEnvironment } from '../../core/config.ts'
import { readCxxLibrary } from '../../gpu/devices/cxx-library.ts'
import { readLinuxSystem } from '../../gpu/devices/driver-advice.ts'
import { findGraphicsCards, type GraphicsCards } from '../../gpu/devices/graphics-cards.ts'
import { findBuilds } from '../../gpu/engines/gguf/backend-packages.ts'
import { backendsFolder } from '../../gpu/engines/gguf/backend-search.ts'
import { type BackendChoice, chooseGpuBackend } from '../../gpu/engines/gguf/choose-backend.ts'
import { gpuBackends } from '../../gpu/engines/gguf/gpu-packages.ts'
import { failureOfThrown } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The file in the data directory that records that the user declined the offer. */
const declinedFile = 'gpu-declined'

type Environment = Readonly<Record<string, string | undefined>>

/** The command that installs a backend. */
const setupCommand = 'infer engine setup gpu'

/**
 * What the built-in engine needs to use the cards of this machine; null where there is no card worth it. A part of an
 * Intel processor is not, and neither is a display that only a virtual machine has. Pure.
 */
export function neededFor(cards: GraphicsCards, choice: BackendChoice): BackendChoice | null {
  const isCard = cards.nvidia.length > 0 || cards.fault !== null || cards.bus.some(({ integrated }) => !integrated)
  return isCard ? choice : null
}

/** What the built-in engine needs to use the cards of this machine, whether or not it is installed. Never rejects. */
export async function neededHere(environment: Environment): Promise<BackendChoice | null> {
  const cards = await findGraphicsCards({ environment })
  return neededFor(cards, chooseGpuBackend(cards, { ...readLinuxSystem(), cxxLibrary: readCxxLibrary() }, process.arch))
}

/** Whether a backend of this version is installed. */
export const hasBackend = (dataDir: string, environment: Environment): boolean =>
  gpuBackends.some(name => findBuilds(name, backendsFolder(dataDir, environment), llamaVersion).ok)

/** Says in one line why the built-in engine does not use the cards, and what to do; null where it may use them. */
export async function unusedCards(dataDir: string): Promise<string | null> {
  const environment = hostEnvironment()
  if (hasBackend(dataDir, environment)) return null
  const needed = await neededHere(environment)
  return needed && sentenceOf(needed)
}

/** Pure. */
export const sentenceOf = ({ backend, why, advice }: BackendChoice, command = setupCommand): string =>
  backend === null
    ? `The built-in engine does not use the GPUs. ${why}. ${advice ?? ''}`.trim()
    : `The built-in engine does not use the GPUs: it needs ${why}. Run: ${command}`

/**
 * Offers the backend for the cards of this machine to a user at a terminal, once: a "no" is stored in the data directory,
 * and later calls say it in one line, as without a terminal. `again` asks nevertheless. Does nothing where a backend is
 * installed. `command` is how this user runs the setup. Rejects only with the reason of the signal.
 */
export async function offerGpu(
  { dataDir, again = false, command = setupCommand }: { dataDir: string; again?: boolean; command?: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const environment = hostEnvironment()
  if (hasBackend(dataDir, environment)) return
  const needed = await neededHere(environment)
  if (needed === null) return
  const declined = join(dataDir, declinedFile)
  if (needed.backend === null || !terminal.interactive || (!again && existsSync(declined)))
    return terminal.remark(sentenceOf(needed, command))
  const { installGpuBackend } = await import('./install-gpu-backend.ts')
  const notes = [`The built-in engine can use the GPUs with this backend: ${needed.why}.`, needed.advice ?? []].flat()
  try {
    const outcome = await installGpuBackend({ dataDir, backend: needed.backend, notes }, terminal, signal)
    if (outcome !== 'declined') return
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    writeFileSync(declined, 'The backend for GPUs was declined. Remove this file to be asked again.\n')
    terminal.remark(`Models run on the processor. Later: ${command}`)
  } catch (thrown) {
    signal.throwIfAborted()
    terminal.warn(`${failureOfThrown(thrown).message}\nModels run on the processor. Try again with: ${command}`)
  }
}
