import { z } from 'zod'
import type { SseEvent } from '../client/sse.ts'
import type { Job } from './job.ts'

/** The state of a job at one time, as it is drawn. */
export interface JobSnapshot {
  status: string
  /** 0 to 1; null while unknown. */
  progress: number | null
  /** Number of jobs ahead of it in the queue; null once it runs. */
  queuePosition: number | null
  etaSeconds: number | null
  waitingFor: { reason: string; detail: string } | null
}

export const unknownSnapshot: JobSnapshot = {
  status: 'pending',
  progress: null,
  queuePosition: null,
  etaSeconds: null,
  waitingFor: null,
}

export const jobSnapshot = (job: Job): JobSnapshot => ({
  status: job.status,
  progress: job.progress ?? null,
  queuePosition: job.queue_position ?? null,
  etaSeconds: job.eta_seconds ?? null,
  waitingFor: job.waiting_for ? { reason: job.waiting_for.reason, detail: job.waiting_for.detail ?? '' } : null,
})

/** Fields of an event about a job. A missing field leaves its value unchanged. */
const Facts = z.looseObject({
  status: z.string().optional(),
  progress: z.number().nullish(),
  queue_position: z.number().nullish(),
  eta_seconds: z.number().nullish(),
  waiting_for: z.looseObject({ reason: z.string(), detail: z.string().nullish() }).nullish(),
})
/** The body of an event; the first event contains the whole job. */
const Envelope = z.looseObject({ data: z.union([z.looseObject({ job: Facts }), Facts]) })

/** The status of a job after each event. */
const statusAfter: Record<string, string> = {
  'job.created': 'pending',
  'job.started': 'processing',
  'job.retrying': 'pending',
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
}

/**
 * Returns the snapshot after an event; undefined for an unknown event, which a newer server may send and which is
 * ignored.
 */
export function afterEvent(before: JobSnapshot, { event, data }: SseEvent): JobSnapshot | undefined {
  const read = Envelope.safeParse(parsed(data))
  if (!read.success) return undefined
  const body = read.data.data
  const facts = ('job' in body ? body.job : body) as z.output<typeof Facts>
  const status = facts.status ?? statusAfter[event] ?? before.status
  // Progress, position and reason belong to the previous status.
  const kept = status === before.status ? before : unknownSnapshot
  return {
    status,
    progress: facts.progress === undefined ? kept.progress : facts.progress,
    queuePosition: facts.queue_position === undefined ? kept.queuePosition : facts.queue_position,
    etaSeconds: facts.eta_seconds === undefined ? kept.etaSeconds : facts.eta_seconds,
    waitingFor:
      facts.waiting_for === undefined
        ? kept.waitingFor
        : facts.waiting_for && { reason: facts.waiting_for.reason, detail: facts.waiting_for.detail ?? '' },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
