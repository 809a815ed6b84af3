import { type GenerationTask, isSlugTask } from '../schemas/task.ts'
import type { Model } from './model.ts'

type Slugged = Pick<Model, 'id' | 'slug' | 'tasks' | 'enabled'>

/** First parts of paths below /slug that are no models. */
const reserved = ['requests', 'queue']

const nameOf = (task: GenerationTask): string => task.slice('slug/'.length)

/** Where a model is asked for pictures and videos: one slug for each such task, the one that is shown. */
export function slugsOf(model: Pick<Model, 'id' | 'slug' | 'tasks'>): Map<GenerationTask, string> {
  const own = model.tasks.filter(isSlugTask)
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

/** Every slug of all models that are offered. */
export function slugTable<M extends Slugged>(models: readonly M[]): Map<string, { model: M; task: GenerationTask }> {
  const table = new Map<string, { model: M; task: GenerationTask }>()
  for (const model of models)
    if (model.enabled)
      for (const [slug, task] of everySlugOf(model)) if (!table.has(slug)) table.set(slug, { model, task })
  return table
}

/** Why this model cannot have its slugs beside those before it, as a sentence; undefined when it can. */
export function slugFault(model: Slugged, before: readonly Slugged[]): string | undefined {
  if (!model.enabled) return undefined
  const taken = slugTable(before)
  for (const slug of everySlugOf(model).keys()) {
    if (reserved.includes(slug.split('/')[0]!))
      return `the slug '${slug}' of the model '${model.id}' begins with '${slug.split('/')[0]}', which is no model's; choose another with 'slug'.`
    const other = taken.get(slug)?.model
    if (other && other.id !== model.id)
      return `the models '${other.id}' and '${model.id}' would both be asked at /slug/${slug}; give one of them another 'slug'.`
  }
  return undefined
}

const parts = (slug: string): Set<string> =>
  new Set(
    slug
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter(Boolean),
  )

/** Those of the slugs that somebody may have meant, nearest first: by the words that they share. */
export function closeSlugs(wanted: string, slugs: Iterable<string>, most = 3): string[] {
  const words = parts(wanted.slice(0, 256))
  const rank = (slug: string) => {
    const own = parts(slug)
    let common = 0
    for (const word of own) {
      if (words.has(word)) common += 2
      else if ([...words].some(one => one.length > 2 && (word.startsWith(one) || one.startsWith(word)))) common++
    }
    return common / (own.size + words.size)
  }
  return [...slugs]
    .map(slug => ({ slug, near: rank(slug) }))
    .filter(({ near }) => near > 0)
    .toSorted((a, b) => b.near - a.near || a.slug.length - b.slug.length || (a.slug < b.slug ? -1 : 1))
    .slice(0, most)
    .map(({ slug }) => slug)
}
