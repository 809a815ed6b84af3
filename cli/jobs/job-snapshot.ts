import { z } from 'zod'
import type { SseEvent } from '../sse.ts'
import type { Job } from './job.ts'

/** What is known of a job at one moment, as it is drawn. */
export interface JobSnapshot {
  status: string
  /** 0 to 1; null while nobody can tell. */
  progress: number | null
  /** How many stand before it; null once it is its turn. */
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

export const snapshotOf = (job: Job): JobSnapshot => ({
  status: job.status,
  progress: job.progress ?? null,
  queuePosition: job.queue_position ?? null,
  etaSeconds: job.eta_seconds ?? null,
  waitingFor: job.waiting_for ? { reason: job.waiting_for.reason, detail: job.waiting_for.detail ?? '' } : null,
})

/** What an event may tell of a job. One that says nothing of a fact leaves it as it was. */
const Facts = z.looseObject({
  status: z.string().optional(),
  progress: z.number().nullish(),
  queue_position: z.number().nullish(),
  eta_seconds: z.number().nullish(),
  waiting_for: z.looseObject({ reason: z.string(), detail: z.string().nullish() }).nullish(),
})
/** Around it; the snapshot at the beginning has the whole job. */
const Envelope = z.looseObject({ data: z.union([z.looseObject({ job: Facts }), Facts]) })

/** States by the events that bring them about. */
const statusAfter: Record<string, string> = {
  'job.created': 'pending',
  'job.started': 'processing',
  'job.retrying': 'pending',
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
}

/**
 * The moment after an event of the server. Undefined for an event that tells nothing that is known here: it is passed
 * over, as a newer server may tell more.
 */
export function afterEvent(before: JobSnapshot, { event, data }: SseEvent): JobSnapshot | undefined {
  const read = Envelope.safeParse(parsed(data))
  if (!read.success) return undefined
  const body = read.data.data
  const facts = ('job' in body ? body.job : body) as z.output<typeof Facts>
  const status = facts.status ?? statusAfter[event] ?? before.status
  // What was known of another state says nothing about this one.
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
