import { z } from 'zod'
import type { SseEvent } from '../sse.ts'
import type { Job } from './job.ts'

/** What is known of a job at one moment, as it is drawn. */
export interface Moment {
  status: string
  /** 0 to 1; null while nobody can tell. */
  progress: number | null
  /** How many stand before it; null once it is its turn. */
  queuePosition: number | null
  etaSeconds: number | null
  waitingFor: { reason: string; detail: string } | null
}

export const unknownMoment: Moment = {
  status: 'pending',
  progress: null,
  queuePosition: null,
  etaSeconds: null,
  waitingFor: null,
}

export const momentOf = (job: Job): Moment => ({
  status: job.status,
  progress: job.progress ?? null,
  queuePosition: job.queue_position ?? null,
  etaSeconds: job.eta_seconds ?? null,
  waitingFor: job.waiting_for ? { reason: job.waiting_for.reason, detail: job.waiting_for.detail ?? '' } : null,
})

export interface LogLine {
  timestamp: string
  level: string
  message: string
}
export const LogLine = z.looseObject({ timestamp: z.string(), level: z.string(), message: z.string() })

/** What an event may tell. An event that says nothing of a fact leaves it as it was. */
const Facts = z.looseObject({
  status: z.string().optional(),
  progress: z.number().nullish(),
  queue_position: z.number().nullish(),
  eta_seconds: z.number().nullish(),
  waiting_for: z.looseObject({ reason: z.string(), detail: z.string().nullish() }).nullish(),
  log: LogLine.optional(),
  logs: z.array(LogLine).optional(),
  level: z.string().optional(),
  message: z.string().optional(),
})

/** States by the events that bring them about. */
const statusAfter: Record<string, string> = {
  'job.created': 'pending',
  'job.started': 'processing',
  'job.progress': 'processing',
  'job.retrying': 'pending',
  'job.completed': 'completed',
  'job.failed': 'failed',
  'job.cancelled': 'cancelled',
}

/** The words of the slug API for the same states. */
const statusNamed: Record<string, string> = {
  IN_QUEUE: 'pending',
  IN_PROGRESS: 'processing',
  COMPLETED: 'completed',
  FAILED: 'failed',
}

/**
 * The moment after an event of the server, and what the job said in it. Undefined for an event that is none of a job:
 * it is passed over, as a newer server may tell more than is known here.
 */
export function afterEvent(before: Moment, { event, data }: SseEvent): { moment: Moment; logs: LogLine[] } | undefined {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    return undefined
  }
  const envelope = z.looseObject({ type: z.string().optional(), data: z.unknown() }).safeParse(value)
  if (!envelope.success) return undefined
  const body = envelope.data.data ?? value
  const read = Facts.safeParse(body)
  if (!read.success) return undefined
  const facts = read.data
  const type = event === 'message' ? (envelope.data.type ?? '') : event
  const said = facts.status === undefined ? statusAfter[type] : (statusNamed[facts.status] ?? facts.status)
  const status = said ?? before.status
  const logs = [...(facts.log ? [facts.log] : []), ...(facts.logs ?? [])]
  if (type === 'job.log' && logs.length === 0) {
    const line = LogLine.safeParse(body)
    if (line.success) logs.push(line.data)
  }
  const kept = status === before.status ? before : unknownMoment
  const moment: Moment = {
    status,
    progress: facts.progress === undefined ? kept.progress : facts.progress,
    queuePosition: facts.queue_position === undefined ? kept.queuePosition : facts.queue_position,
    etaSeconds: facts.eta_seconds === undefined ? kept.etaSeconds : facts.eta_seconds,
    waitingFor:
      facts.waiting_for === undefined
        ? kept.waitingFor
        : facts.waiting_for && { reason: facts.waiting_for.reason, detail: facts.waiting_for.detail ?? '' },
  }
  return { moment, logs }
}
