/** Who does something: a token over HTTP, the command line of this machine, or the server itself. */
export interface Actor {
  kind: 'token' | 'command_line' | 'server'
  /** The token; null for the others. */
  tokenId: string | null
  /** The user of the token; null if it has none. */
  userId: string | null
  /** The client address of the request; null for the others. */
  address: string | null
  /** The user of the operating system who runs the command; null for the others. */
  osUser: string | null
}

/** The actor of changes that the server makes by itself. */
export const theServer: Actor = { kind: 'server', tokenId: null, userId: null, address: null, osUser: null }

/** The kinds of objects that administrative acts change. */
export const auditTargets = ['organization', 'user', 'token', 'webhook_endpoint', 'device_pause'] as const
export type AuditTarget = (typeof auditTargets)[number]

/** One administrative act. `before` and `after` have the changed fields under their names in the API, and no secrets. */
export interface AuditEntry {
  /** The organization whose object was changed. */
  organizationId: string
  at: number
  actor: Actor
  /** Object and past participle: `token.created`. */
  action: `${AuditTarget}.${string}`
  targetId: string
  /** Null for an object that did not exist. */
  before: Record<string, unknown> | null
  /** Null for an object that no longer exists. */
  after: Record<string, unknown> | null
}

export interface AuditRecord extends AuditEntry {
  /** Grows with every act of the installation. */
  number: number
  targetType: AuditTarget
}

export interface AuditFilter {
  limit: number
  /** Only records before this number. */
  before?: number
  action?: string
  targetId?: string
  /** Epoch milliseconds. */
  since?: number
  until?: number
}

/** Administrative acts, kept for ever. Each that changes the store is recorded in the transaction of the act. */
export interface AuditStore {
  /** Adds an entry for an act that changes nothing in the store. */
  record(entry: AuditEntry): Promise<void>
  /** Newest first. A page may have fewer than `limit` records; `next` is the cursor of the next page, null at the end. */
  list(organizationId: string, filter: AuditFilter): Promise<{ records: AuditRecord[]; next: number | null }>
  /**
   * Returns the number of the newest entry, and whether one after this number is about an organization, a user or a token.
   * Cheap: ask often.
   */
  accountsChanged(after: number): Promise<{ newest: number; changed: boolean }>
}
