import type { Actor } from './audit-records.ts'
import type { OrganizationUse } from './limits.ts'

/** Limits of an organization. Null takes the figure of its plan; 0 is unlimited, except for spending. */
export interface OrganizationLimits {
  requestsPerMinute: number | null
  jobsPerMinute: number | null
  /** Synchronous requests at the same time. */
  concurrentRequests: number | null
  /** Jobs that wait or run. */
  pendingJobs: number | null
  /** Bytes of all its files. */
  storedBytes: number | null
  /** Files per calendar day in UTC. */
  uploadsPerDay: number | null
  /** Millionths of the currency unit per calendar month in UTC; null without a limit, 0 allows no spending. */
  monthlySpendLimit: number | null
  /** Whether its work never leaves this machine. */
  localOnly: boolean | null
}

/** What is stored of calls: `content` keeps conversations on the server; `metadata` keeps no text of them. */
export const callStorages = ['metadata', 'content'] as const
export type CallStorage = (typeof callStorages)[number]

export interface Organization extends OrganizationLimits {
  id: string
  name: string
  plan: PlanName
  status: OrganizationStatus
  /** Its share of GPU time, 1 to 100; null takes the share of its plan. */
  share: number | null
  /** Its work runs only on models of this region; null without a restriction. */
  region: string | null
  callStorage: CallStorage
  createdAt: number
  updatedAt: number
}

/** An absent limit, share or region is null. */
export interface NewOrganization
  extends Pick<Organization, 'id' | 'name' | 'plan' | 'createdAt'>,
    Partial<Pick<Organization, 'share' | 'region'> & OrganizationLimits> {}

/** Fields of an organization to change. Absent ones stay. */
export type OrganizationChange = Partial<
  Pick<Organization, 'name' | 'plan' | 'share' | 'region' | 'callStorage'> & OrganizationLimits
>

/** Work that has not ended. Jobs of executions are not counted as jobs. */
export interface ActiveWork {
  jobs: number
  executions: number
}

/** Unfinished work that a token began. Lines of batches are not counted as jobs. */
export interface TokenWork extends ActiveWork {
  batches: number
}

/** The name of the organization that owns the machine. It cannot be renamed, suspended or deleted. */
export const machineOwnerName = 'default'

export const organizationStatuses = ['active', 'suspended', 'deleted'] as const
export type OrganizationStatus = (typeof organizationStatuses)[number]

/** The plans of the specification; the configuration may name others. */
export const plans = ['free', 'pro', 'enterprise'] as const
export type PlanName = string

export const roles = ['owner', 'admin', 'member', 'viewer'] as const
export type Role = (typeof roles)[number]

/** A person who belongs to an organization and owns tokens. */
export interface User {
  id: string
  organizationId: string
  name: string
  /** In lower case; unique in the organization. */
  email: string
  role: Role
  createdAt: number
  updatedAt: number
  removedAt: number | null
}

/** A user with his tokens, for lists. */
export interface UserSummary extends User {
  /** How many of his tokens are active. */
  activeTokens: number
  /** When one of his tokens was last used; null if none was. */
  lastUsedAt: number | null
}

/** Who changes a user, and when. */
export interface UserAct {
  by: Actor
  at: number
  /** Also if it takes the organization's last tokens with admin:write. */
  force: boolean
}

export type UserChange = Partial<Pick<User, 'name' | 'email' | 'role'>>

export const scopes = ['user:read', 'user:write', 'admin:read', 'admin:write'] as const
export type Scope = (typeof scopes)[number]

/** The scopes that a token of a user with this role may have. */
export const scopesOfRole: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: ['user:read'],
  member: ['user:read', 'user:write'],
  admin: scopes,
  owner: scopes,
}

export type TokenStatus = 'active' | 'disabled' | 'revoked' | 'expired'

/** When a token may be used: between two times of day, on these days of the week. */
export interface AllowedHours {
  /** IANA name, such as `Europe/Berlin`. */
  timezone: string
  ranges: { days: Weekday[] /** `08:00` */; from: string /** `18:00`; `24:00` is the end of the day. */; to: string }[]
}
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
export type Weekday = (typeof weekdays)[number]

/** Limits of a token. Null is no limit of its own: those of its organization apply in any case. */
export interface TokenLimits {
  requestsPerMinute: number | null
  jobsPerMinute: number | null
  /** Input and output tokens of models. */
  tokensPerMinute: number | null
  /** Synchronous requests at the same time. */
  concurrentRequests: number | null
  /** Millionths of the currency unit per calendar month in UTC; 0 allows no spending. */
  monthlySpendLimit: number | null
  allowedHours: AllowedHours | null
  /** Whether its work never leaves this machine. */
  localOnly: boolean
}

export interface NewToken {
  id: string
  /** The 12 characters of the secret that identify the row. */
  publicId: string
  organizationId: string
  name: string
  scopes: Scope[]
  /** HMAC-SHA256 of the whole secret, 32 bytes. */
  digest: Uint8Array
  /** Its last four characters. */
  hint: string
  /** Model ids or globs that it may use; null means all. */
  models: string[] | null
  /** An absent limit is none. */
  limits?: Partial<TokenLimits>
  /** The user who owns it; null if nobody does. */
  userId?: string | null
  /** JSON text of an object, or null. */
  metadata?: string | null
  /** The first token of its rotations, whose spending it continues; itself if absent. */
  originId?: string
  createdAt: number
  expiresAt: number | null
  /** Id of the token that created it; null for the command line. */
  createdBy: string | null
}

/** The limits of a token that created another one, which bind that one too. */
export interface ParentLimits
  extends Pick<
    TokenLimits,
    'monthlySpendLimit' | 'requestsPerMinute' | 'jobsPerMinute' | 'tokensPerMinute' | 'concurrentRequests'
  > {
  /** The first token of its rotations. */
  originId: string
  /** Of the newest token of its rotations. */
  tokenId: string
  tokenName: string
}

export interface TokenRecord extends Required<Omit<NewToken, 'digest' | 'publicId' | 'limits'>> {
  limits: TokenLimits
  /** What the token spends and sends counts against these too, nearest creator first. */
  parentLimits: readonly ParentLimits[]
  status: TokenStatus
  lastUsedAt: number | null
}

/** A page of a list of tokens; `after` is the id of the last token of the page before. */
export interface TokenPage {
  limit: number
  after?: string
  status?: TokenStatus
  /** Only tokens of this user. */
  userId?: string
  /** Words that the name must have, in any case. */
  search?: string
}

export type TokenChange = Partial<
  Pick<NewToken, 'name' | 'scopes' | 'expiresAt' | 'models' | 'userId' | 'metadata' | 'limits'>
> & { status?: 'active' | 'disabled' }

/** What authentication needs to know of a token and its organization, in one row. */
export interface VerifiableToken extends Omit<TokenRecord, 'createdBy' | 'metadata' | 'status'> {
  organizationName: string
  organizationStatus: OrganizationStatus
  plan: PlanName
  organizationLimits: OrganizationLimits
  /** The region to which the organization is restricted; null without a restriction. */
  region: string | null
  /** What is stored of calls of the organization. */
  callStorage: CallStorage
  digest: Buffer
  status: 'active' | 'disabled' | 'revoked'
}

/** A session of the web console. Times are epoch milliseconds. */
export interface SessionRecord {
  /** SHA-256 of the id. */
  digest: Uint8Array
  tokenId: string
  createdAt: number
  expiresAt: number
}

/** `by` is who the audit log names, in the same transaction; the server itself if absent. */
export interface OrganizationStore {
  /** `conflict` when the id or the name is taken. */
  create(organization: NewOrganization, by?: Actor): Promise<Organization>
  /** Oldest first, deleted ones included. */
  list(): Promise<Organization[]>
  find(id: string): Promise<Organization | undefined>
  /** What it uses of its limits, exact at the time of the call. `dayStart`: when the day began, see `dayStartOf`. */
  use(id: string, dayStart: number): Promise<OrganizationUse>
  /**
   * Undefined: there is none. `conflict` when the name is taken, when it was deleted, and to rename the one that owns
   * the machine.
   */
  update(id: string, change: OrganizationChange, by: Actor, at: number): Promise<Organization | undefined>
  /** Suspends or resumes. Undefined: there is none. `conflict` when it was deleted, or owns the machine. */
  setStatus(id: string, status: 'active' | 'suspended', by: Actor, at: number): Promise<Organization | undefined>
  /** Ids of the suspended ones. Cheap. */
  suspended(): Promise<string[]>
  activeWork(id: string): Promise<ActiveWork>
  /** Cancels jobs and executions, at most `limit` of each. Returns how many; nothing is left after none. */
  cancelWork(id: string, at: number, limit: number): Promise<ActiveWork>
  /**
   * Marks it as deleted, revokes its tokens and removes its users; the name is free again. Undefined: there is none.
   * `conflict` while work is unfinished unless forced, and for the one that owns the machine.
   */
  remove(
    id: string,
    force: boolean,
    by: Actor,
    at: number,
  ): Promise<{ tokensRevoked: number; usersRemoved: number } | undefined>
  /** Deleted ones that have something left to erase. Cheap. */
  unerased(): Promise<string[]>
  /**
   * Erases objects of a deleted one, at most `limit` of each kind, and returns how many; `more`: call it again;
   * `done`: nothing is left.
   */
  erase(
    id: string,
    at: number,
    limit: number,
  ): Promise<{ files: number; workflows: number; more: boolean; done: boolean }>
}

/** Reads do not find users who were removed. */
export interface UserStore {
  /** `conflict` when the e-mail address is taken; `not_found` without the organization. */
  create(user: Omit<User, 'updatedAt' | 'removedAt'>, by: Actor): Promise<User>
  find(organizationId: string, id: string): Promise<User | undefined>
  summary(organizationId: string, id: string): Promise<UserSummary | undefined>
  /** Newest first; `after` is the id of the last user of the page before. */
  list(organizationId: string, page: { limit: number; after?: string }): Promise<UserSummary[]>
  /**
   * Scopes that the role does not allow are taken from his tokens; tokens without any are revoked. Undefined: no such
   * user. `conflict` for the last owner, a taken e-mail address, and, unless forced, the last tokens with admin:write.
   */
  update(
    organizationId: string,
    id: string,
    change: UserChange,
    act: UserAct,
  ): Promise<{ tokensNarrowed: number; tokensRevoked: number } | undefined>
  /** Revokes his tokens. Undefined and `conflict` as for `update`. */
  remove(organizationId: string, id: string, act: UserAct): Promise<{ tokensRevoked: number } | undefined>
}

export interface TokenStore {
  /**
   * `not_found` without the organization; `invalid_value` without the user; `insufficient_scope` beyond his role.
   */
  create(token: NewToken, by?: Actor): Promise<TokenRecord>
  /**
   * Returns the token and its organization, for authentication. Synchronous, because every request starts here: a
   * promise would cost more than the look-up (about 5 µs on SQLite). So a store keeps its tokens where they can be
   * read at once, in a local database or in memory. Changes by `revoke`, `update` and `rotate` of this store take
   * effect when their promise resolves; changes by another process within a second.
   */
  verify(publicId: string): VerifiableToken | undefined
  /** The same by the token's own id, for callers that need no secret. */
  verifyId(id: string): VerifiableToken | undefined
  find(organizationId: string, id: string): Promise<TokenRecord | undefined>
  /** Newest first. */
  list(organizationId: string, page: TokenPage): Promise<TokenRecord[]>
  update(organizationId: string, id: string, change: TokenChange, by?: Actor): Promise<TokenRecord | undefined>
  /** Idempotent. Returns undefined when the organization has no such token. */
  revoke(organizationId: string, id: string, at: number, by?: Actor): Promise<TokenRecord | undefined>
  /**
   * Cancels batches, executions and jobs that the token began, at most `limit` of each. Returns how many; if none,
   * nothing is left.
   */
  cancelWork(organizationId: string, id: string, at: number, limit: number): Promise<TokenWork>
  /** Creates `next` and keeps the old token valid until `previousValidUntil`, in one transaction. */
  rotate(
    organizationId: string,
    id: string,
    next: NewToken,
    previousValidUntil: number,
    by?: Actor,
  ): Promise<TokenRecord | undefined>
  /** How many active tokens of the organization hold the scope. */
  countActive(organizationId: string, scope: string, at: number): Promise<number>
  /** Batched `last_used_at`; at most once a minute a token. */
  touch(uses: { id: string; at: number }[]): Promise<void>
}

/** Sessions of the web console, by the SHA-256 of their id. */
export interface SessionStore {
  /** Also removes expired ones, and the oldest of a token that has more than 50. */
  add(session: SessionRecord): Promise<void>
  /** Synchronous, as `tokens.verify`: every request of the console starts here. */
  find(digest: Uint8Array): SessionRecord | undefined
  /** Moves the ends of sessions, never to an earlier time. */
  extend(these: { digest: Uint8Array; expiresAt: number }[]): Promise<void>
  remove(digest: Uint8Array): Promise<void>
}
