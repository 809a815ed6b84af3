import { z } from 'zod'

const WaitingFor = z.looseObject({
  reason: z.string(),
  detail: z.string().nullish(),
  eta_seconds: z.number().nullish(),
})

/** The fields of a job that the command line uses. Other fields are kept for `--json`. */
export const Job = z.looseObject({
  id: z.string(),
  queue_id: z.string().nullish(),
  task: z.string(),
  model_id: z.string(),
  status: z.string(),
  priority: z.number().optional(),
  /** Number of jobs ahead of it. */
  queue_position: z.number().nullish(),
  /** 0 to 1. */
  progress: z.number().nullish(),
  eta_seconds: z.number().nullish(),
  waiting_for: WaitingFor.nullish(),
  inputs: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullish(),
  attempts: z.number().optional(),
  max_attempts: z.number().optional(),
  created_at: z.number(),
  started_at: z.number().nullish(),
  finished_at: z.number().nullish(),
  metrics: z.looseObject({ queue_ms: z.number().nullish(), run_ms: z.number().nullish() }).nullish(),
  metadata: z.unknown().optional(),
})
export type Job = z.output<typeof Job>

export const JobPage = z.looseObject({
  jobs: z.array(Job),
  has_more: z.boolean().default(false),
  next_cursor: z.string().nullish(),
})

export const jobPath = (id: string): string => `/api/jobs/${encodeURIComponent(id)}`

/** Whether a job has ended. An unknown status counts as not ended. */
export const isOver = (status: string): boolean => ['completed', 'failed', 'cancelled'].includes(status)

/** Returns how long the job ran, in seconds; undefined if it never started or still runs. */
export const tookOf = ({ started_at, finished_at, metrics }: Job): number | undefined =>
  metrics?.run_ms != null
    ? metrics.run_ms / 1000
    : started_at == null || finished_at == null
      ? undefined
      : finished_at - started_at

/** Returns the path of a list with this query. */
export const listPath = (query: Record<string, string | number | undefined>): string => {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return `/api/jobs?${new URLSearchParams(given as [string, string][]).toString()}`
}

/** An image, video or audio file in the result of a job. */
const JobFile = z.looseObject({
  url: z.string(),
  file_name: z.string().nullish(),
  content_type: z.string().nullish(),
  file_size: z.number().nullish(),
  width: z.number().nullish(),
  height: z.number().nullish(),
})
export type JobFile = z.output<typeof JobFile>
const Result = z.looseObject({
  images: z.array(JobFile).nullish(),
  video: JobFile.nullish(),
  audio_url: z.string().nullish(),
  content_type: z.string().nullish(),
  seed_used: z.number().nullish(),
  duration_seconds: z.number().nullish(),
  prompt: z.string().nullish(),
})

/** Returns the files of a job; none for a job of a task without files. */
export function filesOfJob(job: Job): {
  files: JobFile[]
  seed: number | undefined
  durationSeconds: number | undefined
  prompt: string | undefined
} {
  const read = Result.safeParse(job.result)
  const { images, video, audio_url, content_type, seed_used, duration_seconds, prompt } = read.success ? read.data : {}
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
