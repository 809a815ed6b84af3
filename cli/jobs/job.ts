import { type Api, type Client, dataOf } from '../client/client.ts'

export type Job = Api['Job']
export type JobSummary = Api['JobSummary']

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
