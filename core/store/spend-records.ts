/** What was spent in a calendar month in UTC, in millionths of the currency unit. */
export interface SpendRecord {
  organizationId: string
  /** The first token of its rotations; null for the whole organization; for a fallback, see `fallbackOrigin`. */
  originId: string | null
  /** First millisecond of the month. */
  month: number
  /** Of a token with what the tokens that share its budget have spent. */
  spent: number
}

/** An unfinished job that holds money. */
export interface HeldJob {
  id: string
  organizationId: string
  /** The first token of the rotations of its token. */
  originId: string
  /** The same of the tokens whose budgets it shares. */
  parentIds: string[]
  /** The model that does it as a fallback; null if it is the one that was requested. */
  fallbackModelId: string | null
  /** Millionths of the currency unit. */
  held: number
}

/** What a running call may cost as a fallback with a limit. */
export interface FallbackHold {
  /** Of the call. */
  id: string
  organizationId: string
  modelId: string
  /** Millionths of the currency unit. */
  held: number
}

/** The tables about spending. The end of a job changes them in its own transaction. */
export interface SpendStore {
  /** Everything spent in the months from this one on. Read at the start. */
  read(fromMonth: number): Promise<SpendRecord[]>
  /** The unfinished jobs that hold money. Read at the start. */
  held(): Promise<HeldJob[]>
  /**
   * Sets the monthly limit of organizations without one of their own, by plan: a plan that is absent has none. Events of
   * limits that are reached consider it from then on.
   */
  limitPlans(limits: Readonly<Record<string, number>>): Promise<void>
  /**
   * Keeps what a call may cost until its ledger row is written or `dropFallback`. What a killed server leaves is counted as
   * spent on the fallback at the next start, and not billed.
   */
  holdFallback(hold: FallbackHold): Promise<void>
  /** The call ends without a ledger row. */
  dropFallback(id: string): Promise<void>
}
