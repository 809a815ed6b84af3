import type { Schema } from '../../../api/schema.ts'
import type { Submission, Unanswered } from './outbox.ts'

export type JobSummary = Schema<'JobSummary'>

/** The metadata by which the jobs of the playground are listed. */
export const playgroundSource = { source: 'playground' } as const

/** The metadata of a job of the playground. */
export const metadataOf = ({ key }: Submission) => ({ ...playgroundSource, submission: key })

/** What one press of the button has made: the jobs of all models, shapes and variations. */
export interface FeedRun {
  id: string
  jobs: readonly JobSummary[]
  unanswered: readonly Unanswered[]
}

const keyOf = ({ id, metadata }: JobSummary): string =>
  (metadata as Partial<ReturnType<typeof metadataOf>> | null)?.submission ?? id
const runOf = (key: string): string => key.replace(/\.\d+$/, '')
const placeOf = (key: string): number => Number(/\.(\d+)$/.exec(key)?.[1] ?? 0)

/** Returns the runs, newest first: `jobs` are newest first, `unanswered` newest last. */
export function runsOf(jobs: readonly JobSummary[], unanswered: readonly Unanswered[]): FeedRun[] {
  const known = new Set(jobs.map(keyOf))
  const waiting = unanswered.filter(({ key }) => !known.has(key))
  const ids = new Set([...waiting.map(({ key }) => key).toReversed(), ...jobs.map(keyOf)].map(runOf))
  const byRun = Map.groupBy(jobs, job => runOf(keyOf(job)))
  return [...ids].map(id => ({
    id,
    jobs: (byRun.get(id) ?? []).toSorted((a, b) => placeOf(keyOf(a)) - placeOf(keyOf(b))),
    unanswered: waiting.filter(({ key }) => runOf(key) === id),
  }))
}

/**
 * Whether the oldest run may have further jobs on the next page: the jobs of a run are created together, and one of its
 * places is missing.
 */
export function isCut(runs: readonly FeedRun[]): boolean {
  const run = runs.findLast(({ jobs }) => jobs.length > 0)
  if (!run) return false
  const places = [...run.jobs.map(keyOf), ...run.unanswered.map(({ key }) => key)].map(placeOf)
  return places.length <= Math.max(...places)
}

interface Wanted {
  /** Id of the run. */
  run: string
  task: string
  models: readonly string[]
  inputs: Readonly<Record<string, unknown>>
  /** Aspect ratios to make; none for that of the inputs. */
  ratios: readonly string[]
  /** Seeds, one for each variation; none for that of the inputs. */
  seeds: readonly number[]
}

/** Returns the jobs of a run: for each model, each aspect ratio and each seed one. */
export function submissionsOf({ run, task, models, inputs, ratios, seeds }: Wanted): Submission[] {
  const shapes = ratios.length > 0 ? ratios.map(ratio => ({ ...inputs, aspect_ratio: ratio })) : [inputs]
  const variations = shapes.flatMap(shape => (seeds.length > 0 ? seeds.map(seed => ({ ...shape, seed })) : [shape]))
  return models
    .flatMap(model => variations.map(one => ({ task, model, inputs: one })))
    .map((one, place) => ({ ...one, key: `${run}.${place}` }))
}

/** Returns as many seeds as variations, from that of the inputs or a new one; none for a single result. */
export const seedsFor = (variations: number, seed: unknown, newSeed: () => number): number[] => {
  if (variations <= 1) return []
  const first = typeof seed === 'number' ? seed : newSeed()
  return Array.from({ length: variations }, (_, at) => first + at)
}
