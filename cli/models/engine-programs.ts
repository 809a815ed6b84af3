import { join } from 'node:path'
import { tasks as allTasks, type Task } from '../../core/schemas/task.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import type { Preset } from '../../gpu/presets/preset.ts'
import { presets } from '../../gpu/presets/presets.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'

/** What decides whether an engine is installed. */
export interface InstalledWhere {
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

function programOf(preset: Preset, { dataDir, path, tasks }: InstalledWhere): string | undefined {
  const { program, environments = [] } = preset.installation?.(tasks) ?? {}
  if (program === undefined) return undefined
  const folders = [...environments, preset.name].map(one => join(environmentsFolder(dataDir), one, 'bin'))
  return findProgram(program, [...folders, path].join(':'))
}
