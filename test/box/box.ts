import type { Cards } from './cards.ts'
import type { Client } from './client.ts'
import type { Organization, Server } from './server.ts'

export const organizationNames = ['engineering', 'support', 'research'] as const
type OrganizationName = (typeof organizationNames)[number]

/** A request that somebody waited for. Times are milliseconds since the start of the run. */
export interface Call {
  actor: string
  model: string
  at: number
  /** When its answer began: the first event of a stream, the whole answer of others; null if none came. */
  began: number | null
  ended: number
  /** `broken`: the connection or the stream ended before the answer was whole. */
  outcome: 'served' | 'refused' | 'broken'
  /** Status and code of a refusal, or what broke. */
  detail: string
  jobId: string | null
}

/** Work that the server has acknowledged. */
export interface Acknowledged {
  kind: string
  id: string
  at: number
  /** Returns what is wrong with its result, null if nothing is, and undefined while it has not ended. */
  check(): Promise<string | null | undefined>
}

/** Something that went wrong on purpose, and from when to when; `ended` is null while it lasts. */
export interface Fault {
  kind: 'foreign' | 'crash' | 'kill' | 'lost'
  name: string
  at: number
  ended: number | null
  /** The model that it concerns; null for all. */
  model: string | null
  /** One line for the page of figures. */
  result: string
  /** What followed from it, and within which time it should have. */
  steps: { what: string; ms: number; withinMs: number }[]
}

/** One run: what acts on it, and what was seen. */
export interface Box {
  server: Server
  cards: Cards
  organizations: Record<OrganizationName, Organization>
  calls: Call[]
  /** Those that have not ended. */
  open: Set<Call>
  acknowledged: Acknowledged[]
  faults: Fault[]
  /** Milliseconds since the start of the run. */
  now(): number
  say(line: string): void
  /** Aborted when actors begin nothing more. */
  over: AbortSignal
}

/** Somebody who uses the box until `over`. What throws fails the run. */
export interface Actor {
  name: string
  organization: OrganizationName
  run(client: Client, box: Box): Promise<void>
}

/** One fault. Returns when the box has been left alone long enough to recover. */
export type Disturbance = (box: Box) => Promise<void>
