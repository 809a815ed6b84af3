import { nearest } from '../../core/nearest.ts'
import { type GenerationTask, generationTasks, isSlugTask, operationOf, type Task } from '../../core/schemas/task.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'

/** The fields of `GET /api/model-status` that decide which task is meant. */
export interface GenerationModel {
  model_id: string
  tasks: readonly string[]
  enabled?: boolean | undefined
  slugs?: Record<string, string> | undefined
}

/** Which media were given. They select the task of a model with several. */
export interface GivenMedia {
  image: boolean
  mask: boolean
  video: boolean
  audio: boolean
}
export type Medium = keyof GivenMedia

/** Whether a task requires this medium; a task requires every medium that it takes. */
const needs = (task: GenerationTask, medium: Medium): boolean =>
  Object.hasOwn(generationRequests[operationOf(task)].shape, `${medium}_url`)

export const isVideo = (task: GenerationTask): boolean => /video/.test(task)
export const taskName = (task: string): string => task.replace(/^slug\//, '')

/** Finds a task by its name, with or without `slug/`. */
export function generationTask(name: string): GenerationTask | undefined {
  return generationTasks.find(task => task === name || taskName(task) === name)
}

export interface GenerationTarget {
  modelId: string
  task: GenerationTask
  /** The slug of the model and task; undefined where the server names none. */
  slug: string | undefined
}

const generationTasksOf = (model: GenerationModel): GenerationTask[] =>
  model.tasks.filter(task => isSlugTask(task as Task)) as GenerationTask[]

/** Returns every slug of a model: its configured slugs, and its id followed by the name of the task. */
function slugsOf(model: GenerationModel): Map<string, GenerationTask> {
  const all = new Map<string, GenerationTask>()
  for (const task of generationTasksOf(model)) {
    const shown = model.slugs?.[task] ?? model.model_id
    for (const base of [shown, model.model_id])
      if (!base.endsWith(`/${taskName(task)}`)) all.set(`${base}/${taskName(task)}`, task)
    if (model.slugs?.[task] !== undefined) all.set(shown, task)
  }
  return all
}

/** Returns the id and slugs of a generation model for messages and completion; `only` restricts the tasks. */
export function modelNames(model: GenerationModel, only: (task: GenerationTask) => boolean = () => true): string[] {
  const modelTasks = generationTasksOf(model).filter(only)
  return modelTasks.length === 0
    ? []
    : [...new Set([model.model_id, ...modelTasks.flatMap(task => model.slugs?.[task] ?? [])])]
}

/** Returns the id or slug closest to an unknown name; undefined when none is close. */
export function nearestTarget(
  name: string,
  models: readonly GenerationModel[],
  only?: (task: GenerationTask) => boolean,
) {
  const names = models.flatMap(model => [...(only ? [] : [model.model_id]), ...modelNames(model, only)])
  const bases = names.map(one => one.split('/')[0]!)
  return nearest(name, new Set([...names, ...bases]))
}

/**
 * Finds the model and task for a model id or slug. Undefined when no model for images or videos has this name. Throws
 * usage when the task is ambiguous or does not fit the given media, and `model_not_found` for a disabled model.
 */
export function generationTarget(
  models: readonly GenerationModel[],
  name: string,
  given: GivenMedia,
  { requested, only }: { requested?: GenerationTask | undefined; only?: (task: GenerationTask) => boolean } = {},
): GenerationTarget | undefined {
  const hasName = (one: GenerationModel) =>
    one.model_id === name || generationTasksOf(one).some(task => one.slugs?.[task] === `${name}/${taskName(task)}`)
  // A slug of one task selects that task.
  const model = models.find(one => slugsOf(one).has(name)) ?? models.find(hasName)
  if (!model || generationTasksOf(model).length === 0) return undefined
  if (model.enabled === false)
    throw refused('model_not_found', `The model '${name}' is disabled. Set 'enabled: true' in infer.yaml to use it.`)
  const bySlug = slugsOf(model).get(name)
  const possible = bySlug ? [bySlug] : generationTasksOf(model).filter(task => only?.(task) ?? true)
  const shown = `'${printable(name)}'`
  if (bySlug && only && !only(bySlug)) {
    const others = modelNames(model, only)
    const instead = others.length > 0 ? ` Give one of ${others.join(', ')}.` : ''
    throw usageFailure(`${shown} does not make that: it is only for ${taskName(bySlug)}.${instead}`)
  }
  if (possible.length === 0)
    throw usageFailure(
      `${shown} does not make that: its tasks are ${generationTasksOf(model).map(taskName).join(', ')}.`,
    )
  if (requested && !possible.includes(requested))
    throw usageFailure(
      `${shown} does not do ${taskName(requested)}: its tasks are ${possible.map(taskName).join(', ')}.`,
    )
  const task = requested ?? (possible.length === 1 ? possible[0]! : taskFor(possible, given))
  if (!task)
    throw usageFailure(`${shown} has several tasks. Choose one with --task: ${possible.map(taskName).join(', ')}.`)
  check(task, given)
  return { modelId: model.model_id, task, slug: model.slugs?.[task] }
}

/**
 * Returns what the first models could do with the given media, one target for each model, in the order of the models.
 * With `requested` only those that do this task.
 */
export function possibleTargets(
  models: readonly GenerationModel[],
  given: GivenMedia,
  { requested, only }: { requested?: GenerationTask | undefined; only: (task: GenerationTask) => boolean },
): GenerationTarget[] {
  return models.flatMap(model => {
    if (model.enabled === false) return []
    const task = generationTasksOf(model).find(
      one => only(one) && (requested ?? one) === one && mismatches(one, given).length === 0,
    )
    return task ? [{ modelId: model.model_id, task, slug: model.slugs?.[task] }] : []
  })
}

/**
 * Whether the first word of a command names a model, or was meant to: a path, or close to a name. Otherwise it begins
 * the prompt.
 */
export function namesModel(word: string, models: readonly GenerationModel[]): boolean {
  if (/\s/.test(word)) return false
  const isKnown = models.some(model => model.model_id === word || slugsOf(model).has(word))
  return isKnown || word.includes('/') || nearestTarget(word, models) !== undefined
}

/** Returns the only task that takes exactly the given media, if there is one. */
function taskFor(possible: readonly GenerationTask[], given: GivenMedia): GenerationTask | undefined {
  const fitting = possible.filter(task => mismatches(task, given).length === 0)
  return fitting.length === 1 ? fitting[0] : undefined
}

function mismatches(task: GenerationTask, given: GivenMedia): string[] {
  return (Object.keys(given) as Medium[])
    .filter(medium => given[medium] !== needs(task, medium))
    .map(medium => `${taskName(task)} ${given[medium] ? `takes no --${medium}` : `needs --${medium} <file>`}`)
}

function check(task: GenerationTask, given: GivenMedia): void {
  const [wrong] = mismatches(task, given)
  if (wrong !== undefined) throw usageFailure(`${wrong.charAt(0).toUpperCase()}${wrong.slice(1)}.`)
}
