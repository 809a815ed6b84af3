import { type GenerationTask, isGeneration } from '../tasks/tasks.ts'
import type { Model } from './model.ts'

const nameOf = (task: GenerationTask): string => task.slice('slug/'.length)

/** Where a model is asked for pictures and videos: one slug for each such task, the one that is shown. */
export function slugsOf(model: Pick<Model, 'id' | 'slug' | 'tasks'>): Map<GenerationTask, string> {
  const own = model.tasks.filter(isGeneration)
  const base = model.slug ?? model.id
  return new Map(own.map(task => [task, model.slug && own.length === 1 ? base : `${base}/${nameOf(task)}`]))
}

/** Every slug that reaches it: those above, and the model's id with the name of the task, whatever `slug` says. */
export function everySlugOf(model: Pick<Model, 'id' | 'slug' | 'tasks'>): Map<string, GenerationTask> {
  const all = new Map<string, GenerationTask>()
  for (const [task, slug] of slugsOf(model)) {
    for (const base of [model.slug ?? model.id, model.id]) all.set(`${base}/${nameOf(task)}`, task)
    all.set(slug, task)
  }
  return all
}
