import { type GenerationTask, isSlugTask, slugTaskName } from '../schemas/task.ts'
import type { Model } from './model.ts'
import { namesOf } from './model-names.ts'

type Slugged = Pick<Model, 'id' | 'slug' | 'tasks' | 'enabled'> & Partial<Pick<Model, 'aliases' | 'profiles'>>

/** First parts of paths below /slug that do not name models. */
const reserved = ['requests', 'queue']

/** Returns the slug of each image and video task of a model, in the form that lists show. */
export function slugsOf(model: Pick<Model, 'id' | 'slug' | 'tasks'>): Map<GenerationTask, string> {
  const own = model.tasks.filter(isSlugTask)
  const base = model.slug ?? model.id
  return new Map(own.map(task => [task, model.slug && own.length === 1 ? base : `${base}/${slugTaskName(task)}`]))
}

/** Returns the slug of the first task that has one; null if none has. */
export const firstSlugOf = (model: Pick<Model, 'id' | 'slug' | 'tasks'>): string | null =>
  slugsOf(model).values().next().value ?? null

/** Returns every slug of a model: also its id with the name of the task, even if `slug` is set. */
export function everySlugOf(model: Pick<Model, 'id' | 'slug' | 'tasks'>): Map<string, GenerationTask> {
  const all = new Map<string, GenerationTask>()
  for (const [task, slug] of slugsOf(model)) {
    for (const base of [model.slug ?? model.id, model.id]) all.set(`${base}/${slugTaskName(task)}`, task)
    all.set(slug, task)
  }
  return all
}

/** Returns the slugs of a model and of its aliases and profiles, each with the name that it stands for. */
function namedSlugsOf(model: Slugged): { slug: string; task: GenerationTask; name: string }[] {
  if (!model.tasks.some(isSlugTask)) return []
  return namesOf(model).flatMap(name =>
    Array.from(everySlugOf(name === model.id ? model : { ...model, id: name, slug: undefined }), ([slug, task]) => ({
      slug,
      task,
      name,
    })),
  )
}

/** The model and task of each path below /slug, and the name of the model that the path has. */
export type SlugTable<M extends Slugged> = Map<string, { model: M; task: GenerationTask; name: string }>

/** Returns every slug of all enabled models. */
export function slugTable<M extends Slugged>(models: readonly M[]): SlugTable<M> {
  const table: SlugTable<M> = new Map()
  for (const model of models) addSlugs(table, model)
  return table
}

/** Adds the slugs of a model, if it is enabled and no model before it has them. */
export function addSlugs<M extends Slugged>(table: SlugTable<M>, model: M): void {
  if (!model.enabled) return
  for (const { slug, task, name } of namedSlugsOf(model)) if (!table.has(slug)) table.set(slug, { model, task, name })
}

/** Returns why the slugs of a model conflict with those of earlier models, as a sentence; undefined without a conflict. */
export function slugFault<M extends Slugged>(model: M, taken: SlugTable<M>): string | undefined {
  if (!model.enabled) return undefined
  for (const { slug, name } of namedSlugsOf(model)) {
    const [first] = slug.split('/')
    if (reserved.includes(first!))
      return name === model.id
        ? `the slug '${slug}' of the model '${model.id}' begins with '${first}', which is reserved; choose another with 'slug'.`
        : `the name '${name}' of the model '${model.id}' begins with '${first}', which is reserved; choose another name.`
    const other = taken.get(slug)?.model
    if (other && other.id !== model.id)
      return `the models '${other.id}' and '${model.id}' would both have the path /slug/${slug}; give one of them another ${name === model.id ? "'slug'" : 'name'}.`
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

/** Returns at most `max` slugs that share words with the requested one, most similar first. */
export function closeSlugs(requested: string, slugs: Iterable<string>, max = 3): string[] {
  const words = parts(requested.slice(0, 256))
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
    .map(slug => ({ slug, similarity: rank(slug) }))
    .filter(({ similarity }) => similarity > 0)
    .toSorted((a, b) => b.similarity - a.similarity || a.slug.length - b.slug.length || (a.slug < b.slug ? -1 : 1))
    .slice(0, max)
    .map(({ slug }) => slug)
}
