import { isId, jobIdOf } from '../../core/ids.ts'
import { type Api, type Client, dataOf } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'

export type Job = Api['Job']
export type JobSummary = Api['JobSummary']
export type ListedJob = Api['ListedJob']

/** Resolves with the record of a job. */
export const jobOf = ({ api }: Client, id: string, signal?: AbortSignal): Promise<Job> =>
  dataOf(api.GET('/api/jobs/{id}', { params: { path: { id } }, signal }))

/** Whether a job has ended. An unknown status counts as not ended. */
export const isOver = (status: string): boolean => ['completed', 'failed', 'cancelled'].includes(status)

/** Returns how long the job ran, in seconds; undefined if it never started or still runs. */
export const tookOf = ({ started_at, finished_at, metrics }: JobSummary): number | undefined =>
  metrics?.run_ms != null
    ? metrics.run_ms / 1000
    : started_at == null || finished_at == null
      ? undefined
      : finished_at - started_at

/** An image, video or audio file in the result of a job. */
export type JobFile = Pick<Api['GeneratedFile'], 'url'> & Partial<Api['GeneratedFile']>

/** The members of results that have files. */
interface Result {
  images?: JobFile[] | null
  video?: JobFile | null
  audio_url?: string | null
  content_type?: string
  seed_used?: number | null
  duration_seconds?: number | null
  prompt?: string | null
}

/** The files of a result, and what describes them. */
export interface ResultFiles {
  files: JobFile[]
  seed: number | undefined
  durationSeconds: number | undefined
  prompt: string | undefined
}

/** Returns the files of a job; none for a job of a task without files. */
export function filesOfJob({ result }: Job): ResultFiles {
  const { images, video, audio_url, content_type, seed_used, duration_seconds, prompt } = (result ?? {}) as Result
  const audio = audio_url ? [{ url: audio_url, content_type, file_name: nameIn(audio_url) }] : []
  return {
    files: [...(images ?? []), ...(video ? [video] : []), ...audio],
    seed: seed_used ?? undefined,
    // Images have no duration.
    durationSeconds: video ? (duration_seconds ?? undefined) : undefined,
    prompt: prompt ?? undefined,
  }
}

const nameIn = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined

/** Minimum length of a part of an id; fewer characters match too many jobs. */
const minIdPart = 4
/** Number of newest jobs in which a part of an id is searched. */
const maxSearched = 500

/** Returns a whole job id, or the job id of a `q_…` id; undefined for a part of an id. */
function wholeId(text: string): string | undefined {
  if (!isId(text)) return undefined
  return text.startsWith('q_') ? jobIdOf(text) : text.startsWith('job_') ? text : undefined
}

/** Returns the part of an id after the `_`, in upper case as ids are. */
const core = (text: string): string => text.replace(/^(job|q)_/i, '').toUpperCase()

/** Returns the ids that begin or end with this part. */
const matching = (part: string, ids: readonly string[]): string[] =>
  ids.filter(id => core(id).startsWith(core(part)) || core(id).endsWith(core(part)))

/** Finds one job, as `findIds` does. */
export async function findJob(client: Client, text: string, signal?: AbortSignal): Promise<string> {
  const [id] = await findIds(client, [text], signal)
  return id!
}

/**
 * Finds jobs by their ids, or by the beginning or end of an id, which must be unique among the newest jobs. Throws
 * usage when several match, and `not_found` when none does.
 */
export async function findIds(client: Client, texts: readonly string[], signal?: AbortSignal): Promise<string[]> {
  const parts = texts.filter(text => wholeId(text) === undefined)
  const short = parts.find(part => core(part).length < minIdPart || !/^[0-9A-Z]+$/.test(core(part)))
  if (short !== undefined)
    throw usageFailure(
      `'${printable(short)}' is not a job id. Give the whole id, or ${minIdPart} or more characters of its end.`,
    )
  const recent: string[] = []
  if (parts.length > 0)
    for await (const { id } of jobPages(client, {}, signal)) {
      recent.push(id)
      if (recent.length >= maxSearched) break
    }
  const ids = texts.map(text => {
    const whole = wholeId(text)
    if (whole !== undefined) return whole
    const found = matching(text, recent)
    if (found.length === 0)
      throw refused(
        'not_found',
        `None of the ${recent.length === 0 ? '' : `newest ${recent.length} `}jobs has an id that begins or ends with '${printable(text)}'. See: infer job list`,
      )
    if (found.length > 1)
      throw usageFailure(
        `'${printable(text)}' matches ${found.length > 5 ? `${found.length} jobs` : found.join(' and ')}. Give more of the id.`,
      )
    return found[0]!
  })
  return [...new Set(ids)]
}

/** Which jobs to list. */
export interface JobFilter {
  status?: JobSummary['status']
  task?: JobSummary['task']
  model?: string
  /** Unix seconds. */
  since?: number
  /** Words of the prompt. */
  search?: string
  /** Id of another organization, or `all`. */
  organization?: string
}

const pageSize = 100

/** Yields jobs, newest first. Requests the next page only when the caller reads on. */
export async function* jobPages(
  client: Client,
  { status, task, model, since, search, organization }: JobFilter,
  signal?: AbortSignal,
  limit = pageSize,
): AsyncGenerator<ListedJob, void, void> {
  const names = { model_id: model, created_after: since, q: search, organization }
  const query = { status, task, ...names, limit: Math.min(limit, pageSize) }
  let after: string | undefined
  do {
    const page = await dataOf(client.api.GET('/api/jobs', { params: { query: { ...query, after } }, signal }))
    yield* page.jobs
    // A page can be empty although more pages follow.
    after = page.has_more ? (page.next_cursor ?? undefined) : undefined
  } while (after !== undefined)
}
