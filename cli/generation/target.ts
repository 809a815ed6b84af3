import { nearest } from '../../core/nearest.ts'
import { type GenerationTask, generationTasks, isSlugTask, type Task } from '../../core/schemas/task.ts'
import { generationRequests } from '../../core/tasks/generation/request.ts'
import { refused, usage } from '../exit-codes.ts'
import { printable } from '../paint.ts'

/** What `GET /api/model-status` says of a model, as far as it matters which task is meant. */
export interface OfferedModel {
  model_id: string
  tasks: readonly string[]
  enabled?: boolean | undefined
  slugs?: Record<string, string> | undefined
}

/** Which media were given. They say which task is meant, where a model has several. */
export interface GivenMedia {
  image: boolean
  mask: boolean
  video: boolean
  audio: boolean
}
export type Medium = keyof GivenMedia

/** What a task takes besides words: all of it is needed. */
const needs = (task: GenerationTask, medium: Medium): boolean =>
  Object.hasOwn(generationRequests[task].shape, `${medium}_url`)

export const isVideo = (task: GenerationTask): boolean => /video/.test(task)
export const nameOf = (task: string): string => task.replace(/^slug\//, '')

/** A task by its name, with or without `slug/`. */
export function generationTask(name: string): GenerationTask | undefined {
  return generationTasks.find(task => task === name || nameOf(task) === name)
}

export interface Target {
  modelId: string
  task: GenerationTask
}

const ownOf = (model: OfferedModel): GenerationTask[] =>
  model.tasks.filter(task => isSlugTask(task as Task)) as GenerationTask[]

/** Every slug of a model: those that are shown, and its names with that of the task. */
function slugsOf(model: OfferedModel): Map<string, GenerationTask> {
  const all = new Map<string, GenerationTask>()
  for (const task of ownOf(model)) {
    const shown = model.slugs?.[task] ?? model.model_id
    for (const base of [shown, model.model_id])
      if (!base.endsWith(`/${nameOf(task)}`)) all.set(`${base}/${nameOf(task)}`, task)
    if (model.slugs?.[task] !== undefined) all.set(shown, task)
  }
  return all
}

/** How a model that makes something is called, for sentences and for the Tab key; with `only`, something of that kind. */
export function namesOf(model: OfferedModel, only: (task: GenerationTask) => boolean = () => true): string[] {
  const made = ownOf(model).filter(only)
  return made.length === 0 ? [] : [...new Set([model.model_id, ...made.flatMap(task => model.slugs?.[task] ?? [])])]
}

/** The id or slug that was meant by a name that none here has; undefined where none is close. */
export function nearestTarget(name: string, models: readonly OfferedModel[], only?: (task: GenerationTask) => boolean) {
  const names = models.flatMap(model => [...(only ? [] : [model.model_id]), ...namesOf(model, only)])
  const bases = names.map(one => one.split('/')[0]!)
  return nearest(name, new Set([...names, ...bases]))
}

/**
 * Which model and task are meant by a name: the id of a model or a slug. Undefined when the name is none of a model
 * that makes pictures or videos. Throws usage when the task is not clear or does not fit what was given, and
 * `model_not_found` for a model that is switched off.
 */
export function targetOf(
  models: readonly OfferedModel[],
  name: string,
  given: GivenMedia,
  { asked, only }: { asked?: GenerationTask | undefined; only?: (task: GenerationTask) => boolean } = {},
): Target | undefined {
  const whole = (one: OfferedModel) =>
    one.model_id === name || ownOf(one).some(task => one.slugs?.[task] === `${name}/${nameOf(task)}`)
  // A slug that a model has for one of its tasks alone names that task.
  const model = models.find(one => slugsOf(one).has(name)) ?? models.find(whole)
  if (!model || ownOf(model).length === 0) return undefined
  if (model.enabled === false)
    throw refused('model_not_found', `The model '${name}' is disabled. Set 'enabled: true' in infer.yaml to use it.`)
  const bySlug = slugsOf(model).get(name)
  const possible = bySlug ? [bySlug] : ownOf(model).filter(task => only?.(task) ?? true)
  const shown = `'${printable(name)}'`
  if (bySlug && only && !only(bySlug)) {
    const others = namesOf(model, only)
    const instead = others.length > 0 ? ` Give one of ${others.join(', ')}.` : ''
    throw usage(`${shown} does not make that: it is for ${nameOf(bySlug)} alone.${instead}`)
  }
  if (possible.length === 0)
    throw usage(`${shown} does not make that: its tasks are ${ownOf(model).map(nameOf).join(', ')}.`)
  if (asked && !possible.includes(asked))
    throw usage(`${shown} does not do ${nameOf(asked)}: its tasks are ${possible.map(nameOf).join(', ')}.`)
  const task = asked ?? (possible.length === 1 ? possible[0]! : chosen(possible, given))
  if (!task) throw usage(`${shown} does several things. Say which with --task: ${possible.map(nameOf).join(', ')}.`)
  check(task, given)
  return { modelId: model.model_id, task }
}

/** The one task that takes exactly what was given, if there is one. */
function chosen(possible: readonly GenerationTask[], given: GivenMedia): GenerationTask | undefined {
  const fitting = possible.filter(task => misfits(task, given).length === 0)
  return fitting.length === 1 ? fitting[0] : undefined
}

function misfits(task: GenerationTask, given: GivenMedia): string[] {
  return (Object.keys(given) as Medium[])
    .filter(medium => given[medium] !== needs(task, medium))
    .map(medium => `${nameOf(task)} ${given[medium] ? `takes no --${medium}` : `needs --${medium} <file>`}`)
}

function check(task: GenerationTask, given: GivenMedia): void {
  const [wrong] = misfits(task, given)
  if (wrong !== undefined) throw usage(`${wrong.charAt(0).toUpperCase()}${wrong.slice(1)}.`)
}
