import type { Schema } from '../../api/schema.ts'

/** Something that happened to a job. */
export interface JobMoment {
  type: string
  /** Unix seconds. */
  at: number
  attempt: number
  /** Why the attempt failed, of one that is tried again. */
  reason?: string | undefined
}

/** What an event of a job says on the wire, as far as its history shows it. */
export interface JobEvent {
  created_at: number
  data: { attempt?: number; error?: { message: string } | null }
}

export const momentOf = (type: string, { created_at: at, data: { attempt = 0, error } }: JobEvent): JobMoment => ({
  type,
  at,
  attempt,
  // The error of a job that has ended stands above.
  reason: type === 'job.retrying' ? error?.message : undefined,
})

/** What the times of a job say, which is kept longer than its events. */
type JobTimes = { status: string } & Pick<Schema<'Job'>, 'attempts' | 'created_at' | 'started_at' | 'finished_at'>

const ends: readonly string[] = ['completed', 'failed', 'cancelled']

/** Returns what is known to have happened, each once, in its order. */
export function momentsOf(job: JobTimes, ...sources: readonly (readonly JobMoment[])[]): JobMoment[] {
  const { attempts } = job
  const found = new Map<string, JobMoment>()
  const add = (moment: JobMoment) => {
    // Only a start and a failed attempt happen more than once.
    const again = moment.type === 'job.started' || moment.type === 'job.retrying'
    const key = again ? `${moment.type} ${moment.attempt}` : moment.type
    if (!found.has(key)) found.set(key, moment)
  }
  for (const moment of sources.flat()) add(moment)
  add({ type: 'job.created', at: job.created_at, attempt: 0 })
  if (job.started_at !== null) add({ type: 'job.started', at: job.started_at, attempt: attempts })
  if (job.finished_at !== null && ends.includes(job.status))
    add({ type: `job.${job.status}`, at: job.finished_at, attempt: attempts })
  const order = ['job.created', 'job.started', 'job.retrying', 'job.waiting']
  const rank = ({ type, attempt }: JobMoment): number =>
    type === 'job.created' ? 0 : order.includes(type) ? 2 * attempt + order.indexOf(type) : Number.MAX_SAFE_INTEGER
  return [...found.values()].toSorted((a, b) => rank(a) - rank(b))
}
