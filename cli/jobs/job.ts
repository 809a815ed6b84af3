import { z } from 'zod'

const WaitingFor = z.looseObject({
  reason: z.string(),
  detail: z.string().nullish(),
  eta_seconds: z.number().nullish(),
})

/** What the API says of one job, as far as the command line speaks of it; what else it says is kept for `--json`. */
export const Job = z.looseObject({
  id: z.string(),
  queue_id: z.string().nullish(),
  task: z.string(),
  model_id: z.string(),
  status: z.string(),
  priority: z.number().optional(),
  /** How many stand before it. */
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

/** Whether a job in this state stays as it is. A state that nobody knows yet is one on the way. */
export const isOver = (status: string): boolean => ['completed', 'failed', 'cancelled'].includes(status)

/** How long the work itself took, seconds; undefined where it never began or goes on. */
export const tookOf = ({ started_at, finished_at, metrics }: Job): number | undefined =>
  metrics?.run_ms != null
    ? metrics.run_ms / 1000
    : started_at == null || finished_at == null
      ? undefined
      : finished_at - started_at

/** The page of a list that a query asks for. */
export const listPath = (query: Record<string, string | number | undefined>): string => {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return `/api/jobs?${new URLSearchParams(given as [string, string][]).toString()}`
}

/** A file in the result of a job that made pictures, a video or a sound. */
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

/** What a job made that makes files; no files for any other job. */
export function filesOfJob(job: Job): {
  files: JobFile[]
  seed: number | undefined
  durationSeconds: number | undefined
  prompt: string | undefined
} {
  const read = Result.safeParse(job.result)
  const { images, video, audio_url, content_type, seed_used, duration_seconds, prompt } = read.success ? read.data : {}
  const sound = audio_url ? [{ url: audio_url, content_type, file_name: nameIn(audio_url) }] : []
  return {
    files: [...(images ?? []), ...(video ? [video] : []), ...sound],
    seed: seed_used ?? undefined,
    // Pictures have none worth telling.
    durationSeconds: video ? (duration_seconds ?? undefined) : undefined,
    prompt: prompt ?? undefined,
  }
}

const nameIn = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).pathname.split('/').at(-1) : undefined
