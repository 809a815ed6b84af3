import type { Model } from '../core/models/model.ts'
import { impliedBy, type Task } from '../core/schemas/task.ts'
import { findProgram } from './launcher/program.ts'
import { presetOf } from './presets/presets.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Returns what this machine lacks for the task, as a sentence with what to install; null when nothing is missing. Looks
 * at files each time: what is installed meanwhile is found.
 */
export function missingProgram(model: Model, task: Task, environment: Environment): string | null {
  const programs = presetOf(model).programs?.(model, task) ?? []
  const missing = programs.find(name => findProgram(name, environment.PATH ?? '') === undefined)
  if (missing === undefined) return null
  const name = missing.split('/').at(-1)!
  return `'${model.id}' cannot do '${task}' here: its engine needs the program '${missing}', which is not installed. Install it (Debian, Ubuntu: sudo apt install ${name}) and try again.`
}

/** The same for a model that can do none of its tasks; null where it can do one. */
export function missingForAll(model: Model, environment: Environment): string | null {
  let reason: string | null = null
  for (const task of model.tasks) {
    if (impliedBy[task]) continue
    const missing = missingProgram(model, task, environment)
    if (missing === null) return null
    reason ??= missing
  }
  return reason
}
