import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { openLog } from '../../core/log.ts'
import { type Config, readConfig } from '../../core/models/config.ts'
import type { Model } from '../../core/models/model.ts'
import { tasks as allTasks, type Task } from '../../core/schemas/task.ts'
import { cpuDevice } from '../../gpu/devices/cpu.ts'
import { bookable, type Device } from '../../gpu/devices/device.ts'
import { backendsFolder } from '../../gpu/engines/gguf/backend-search.ts'
import { findCards } from '../../gpu/engines/gguf/find-cards.ts'
import type { PlacementTarget } from '../../gpu/estimate/target.ts'
import { environmentsFolder, programsFolder } from '../../gpu/launcher/environment.ts'
import { openCardBackends } from '../../gpu/placement/card-backend.ts'
import { ownCards } from '../../gpu/placement/own-cards.ts'
import { devicesFor, placementTargetFor } from '../../gpu/placement/placement-target.ts'
import type { Preset } from '../../gpu/presets/preset.ts'
import { presetOf, presets } from '../../gpu/presets/presets.ts'
import { probeWrapper } from '../../gpu/sandbox/probe-wrapper.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'

/** What decides whether an engine is installed. */
interface InstalledWhere {
  dataDir: string
  /** The PATH of the environment. */
  path: string
  /** Tasks of the model. */
  tasks: readonly Task[]
}

/** Returns whether the program of an engine is on the PATH or in an environment, or the engine is built in. */
export function isInstalled(engine: string, where: InstalledWhere): boolean {
  const preset = presets.get(engine)
  return preset !== undefined && (preset.installation === undefined || programOf(preset, where) !== undefined)
}

export interface FoundEngine {
  engine: string
  /** Path of its program; undefined if it is not installed. */
  path: string | undefined
}

/** Returns the engines that are installed as programs, on the PATH or in an environment, and those that are not. */
export const findEngines = (where: Omit<InstalledWhere, 'tasks'>): FoundEngine[] =>
  [...presets.values()]
    .filter(preset => preset.installation?.(allTasks).program !== undefined)
    .map(preset => ({ engine: preset.name, path: programOf(preset, { ...where, tasks: allTasks }) }))

/** Returns how to install an engine for these tasks, as a sentence; empty for an engine that is built in. */
export function installAdvice(engine: string, tasks: readonly Task[]): string {
  const installation = presets.get(engine)?.installation?.(tasks)
  return installation ? `The engine '${engine}' is not installed on this machine. ${installation.advice}` : ''
}

/** The path of an engine's program, in an environment or on the PATH; undefined if it is not there. */
export function programOf(preset: Preset, { dataDir, path, tasks }: InstalledWhere): string | undefined {
  const { program, environments = [] } = preset.installation?.(tasks) ?? {}
  if (program === undefined) return undefined
  const folders = [...environments, preset.name].map(one => programsFolder(join(environmentsFolder(dataDir), one)))
  return findProgram(program, [...folders, path].join(':'))
}

/** Where an engine would be placed. */
export interface EngineTarget extends PlacementTarget {
  /** It can use the GPUs only after `infer engine setup gpu`, and runs on the processor until then. */
  needsSetup?: true
}

/**
 * Computes the memory that engines can use on this machine, as the server does. GPUs are queried once, on first use;
 * the first query about the built-in engine can take minutes, because its GPU builds are tested.
 */
export function openPlacementTargets(dataDir: string) {
  const environment = hostEnvironment()
  let discovery: Promise<Device[]> | undefined
  let backends: Promise<ReturnType<typeof openCardBackends>> | undefined
  const folder = backendsFolder(dataDir, environment)
  const wrapping = async () => (await probeWrapper(environment)).wrapper
  const cards = () =>
    (discovery ??= wrapping()
      .then(wrapper => findCards({ folder, environment, wrapper }))
      .then(found => ownCards(found, { environment, devices: configuredDevices(dataDir) }).devices))

  const mainMemory = (): number => Math.floor(cpuDevice().totalBytes * bookable.cpu)

  async function openBackends() {
    const devices = await cards()
    const wrapper = await wrapping()
    const log = openLog('error', () => undefined)
    return openCardBackends({ dataDir, environment, wrapper, memory: { devices: () => devices }, log })
  }

  return {
    cards,
    /** Returns the main memory that models may use, in bytes. */
    mainMemory,
    /** Returns where the server would place the model, once GPUs that need it are set up. */
    async targetFor(model: Model): Promise<EngineTarget> {
      const preset = presetOf(model)
      const slots = model.concurrency ?? preset.slots
      const onProcessor =
        preset.runsOn === 'cpu' || model.devices === 'cpu' || (preset.needsBackend && model.gpu === 'off')
      const devices = onProcessor ? [] : await cards()
      if (!onProcessor && (preset.runsOn === 'gpu' || devices.length > 0)) {
        const backend = preset.needsBackend ? await (await (backends ??= openBackends())).find(model) : undefined
        const capacities = devices.map(({ id, kind, totalBytes, budget = totalBytes }) => {
          return {
            id,
            kind: kind === 'cpu' ? ('cpu' as const) : ('gpu' as const),
            capacity: Math.min(Math.floor(totalBytes * bookable.gpu), budget),
            totalBytes,
          }
        })
        const where = devicesFor(model, 'gpu', devices, { backend })
        const target = { ...placementTargetFor(where, slots, capacities)!, backend: backend?.gpu }
        return backend === null ? { ...target, needsSetup: true } : target
      }
      return { kind: 'cpu', devices: 1, capacity: mainMemory(), slots }
    },
  }
}

/** `devices` of infer.yaml; undefined where the file cannot be read, which the server says when it starts. */
function configuredDevices(dataDir: string): Config['devices'] {
  try {
    return readConfig(join(dataDir, 'infer.yaml'), false).devices
  } catch {
    return undefined
  }
}
