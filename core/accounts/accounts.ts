import { conflict, Failure } from '../failure.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Region } from '../schemas/region.ts'
import {
  type Actor,
  dayStartOf,
  type NewToken,
  type Organization,
  type OrganizationUse,
  type Scope,
  type Store,
  type TokenChange,
  type TokenPage,
  type TokenRecord,
  type TokenStatus,
  type TokenWork,
  theServer,
  type VerifiableToken,
} from '../store/store.ts'
import { isAllowedAt, outsideHours } from './allowed-hours.ts'
import type { Keys } from './keys.ts'
import type { OrganizationOptions } from './organizations.ts'
import { type EffectiveLimits, effectiveLimits, openPlans, type Plans } from './plans.ts'
import { digestMatches, digestOf, hintOf, mintSecret, parseSecret, wrongSecret } from './secret.ts'
import { openSessions, type Sessions, sessionEnded, sessionIn } from './sessions.ts'

/** A token to create. Without `expiresAt` it has the default: 90 days with an admin scope, else it never expires. */
export interface TokenOptions
  extends Pick<NewToken, 'organizationId' | 'name' | 'scopes'>,
    Partial<Pick<NewToken, 'expiresAt' | 'models' | 'limits' | 'userId' | 'metadata' | 'originId' | 'createdBy'>> {}

/** The authenticated caller: one token of one organization. */
export interface Caller {
  tokenId: string
  token: VerifiableToken
  organizationId: string
  /** Who acts, if it is not the token: the user of the command line on the server's own machine. */
  actor?: Actor
  scopes: readonly Scope[]
  /** The region that the request asks for; absent if it asks for none. */
  region?: Region | undefined
  /** Another infer has passed the request on. */
  isRelayed?: true
  /** Of the organization; those of the token are in `token.limits`, and both apply. */
  limits: EffectiveLimits
}

/** A caller whose secret was verified a moment ago. */
interface CachedCaller {
  caller: Caller
  /** The allowed hours of the token were checked and allow it until then, epoch milliseconds. */
  allowedUntil: number
}

const day = 86_400_000
/**
 * How long a verified secret is cached. Changes through this server take effect at once; changes by another process
 * (the CLI beside it) within this time. Otherwise the digest and the look-up would cost 10 µs of every request, a tenth
 * of the gateway's work for a chat.
 */
const cacheMs = 50
const maxCached = 4_096
/** Batches, executions and jobs that are cancelled in one transaction. */
const cancelledAtOnce = 200
/** The maximum time that a rotated secret still works beside its successor, milliseconds. */
export const maxOverlapMs = day

/** The current status of a token: the stored one, or `expired` once its time has passed. */
export const statusAt = ({ status, expiresAt }: Pick<TokenRecord, 'status' | 'expiresAt'>, now: number): TokenStatus =>
  status === 'active' && expiresAt !== null && expiresAt <= now ? 'expired' : status

/**
 * Organizations and their tokens: creation, verification, change and revocation. `issue` and `rotate` return a secret
 * once; only its digest is stored.
 */
export function openAccounts({
  store,
  keys,
  log,
  plans = openPlans({ configured: {}, log }),
  now = Date.now,
  sessions = openSessions({ store, log, now }),
  changed = () => {},
}: {
  store: Store
  keys: Keys
  log: Log
  /** The built-in plans by default. */
  plans?: Pick<Plans, 'of' | 'limitsOf'>
  now?: () => number
  /** Of the web console: `authenticate` takes their credentials as it takes secrets. */
  sessions?: Pick<Sessions, 'tokenOf'>
  /** Called after changes that authentication must see at once, in other processes too; awaited before they are answered. */
  changed?: () => Promise<void> | void
}) {
  const uses = new Map<string, number>()
  const cached = new Map<string, CachedCaller>()
  let cachedUntil = 0
  let lastChange: Promise<unknown> = Promise.resolve()

  /**
   * Runs changes of tokens one after the other: two changes that each disable the other's token must not both find
   * another active one. Clears the cache afterwards.
   */
  function inOrder<T>(change: () => Promise<T>): Promise<T> {
    const done = lastChange.then(async () => {
      try {
        return await change()
      } finally {
        await forgetVerified()
      }
    })
    lastChange = done.catch(() => {})
    return done
  }

  async function forgetVerified(): Promise<void> {
    cached.clear()
    await changed()
  }

  /** Throws `conflict` for the last active token that can manage tokens; without it nobody could create another one. */
  async function requireOtherAdmin(token: TokenRecord): Promise<void> {
    if (statusAt(token, now()) !== 'active' || !token.scopes.includes('admin:write')) return
    if ((await store.tokens.countActive(token.organizationId, 'admin:write', now())) > 1) return
    throw conflict(
      `The token '${token.name}' is the last one with the scope admin:write. Create another one first, or force it.`,
    )
  }

  function draft(options: TokenOptions): { secret: string; token: NewToken } {
    const { organizationId, name, scopes, models = null, limits = {}, userId = null, metadata = null } = options
    const { secret, publicId } = mintSecret()
    const createdAt = now()
    const admin = scopes.some(scope => scope.startsWith('admin:'))
    const { expiresAt = admin ? createdAt + 90 * day : null, createdBy = null, originId } = options
    const rights = { organizationId, name, scopes, models, limits, userId, metadata, expiresAt }
    const digest = digestOf(keys.tokenPepper, secret)
    const origin = originId === undefined ? {} : { originId }
    const token = {
      id: newId('tok'),
      publicId,
      digest,
      hint: hintOf(secret),
      ...rights,
      ...origin,
      createdAt,
      createdBy,
    }
    return { secret, token }
  }

  /** The caller of this secret, in any state; undefined for any other text. */
  function verified(secret: string): CachedCaller | undefined {
    const at = performance.now()
    if (at >= cachedUntil || cached.size >= maxCached) {
      cached.clear()
      cachedUntil = at + cacheMs
    }
    // Only the whole secret hits the cache. Anything else takes the slow path, whose comparison takes constant time.
    const known = cached.get(secret)
    if (known) return known
    const session = sessionIn(secret)
    const row = session === undefined ? bySecret(secret) : sessions.tokenOf(session)
    if (!row) return undefined
    const found = { caller: callerOf(row), allowedUntil: 0 }
    cached.set(secret, found)
    return found
  }

  function bySecret(secret: string): VerifiableToken | undefined {
    const publicId = parseSecret(secret)
    const row = publicId === undefined ? undefined : store.tokens.verify(publicId)
    return digestMatches(row?.digest, digestOf(keys.tokenPepper, secret)) ? row : undefined
  }

  const callerOf = (token: VerifiableToken): Caller => ({
    tokenId: token.id,
    token,
    organizationId: token.organizationId,
    scopes: token.scopes,
    limits: effectiveLimits(plans.of(token.plan), token.organizationLimits),
  })

  /** Throws `outside_allowed_hours`. Hours begin and end on full minutes, so a check holds until the next one. */
  function requireAllowedHours(found: CachedCaller, at: number): void {
    const hours = found.caller.token.limits.allowedHours
    if (hours === null || at < found.allowedUntil) return
    if (!isAllowedAt(hours, at)) throw outsideHours(found.caller.token, hours, at)
    found.allowedUntil = Math.floor(at / 60_000 + 1) * 60_000
  }

  /** Returns the caller if the token can be used now, and remembers the use. */
  function admitted(found: CachedCaller): Caller {
    const { token } = found.caller
    const at = now()
    requireUsable(token, at)
    requireAllowedHours(found, at)
    if (at - (token.lastUsedAt ?? 0) > 60_000) uses.set(token.id, at)
    return found.caller
  }

  return {
    /**
     * Returns the caller of a secret. Throws Failure `missing_api_key`, `invalid_api_key`, `token_revoked`,
     * `token_expired`, `organization_disabled`, `outside_allowed_hours`. Synchronous; about 10 µs for a secret that is not
     * cached, negligible otherwise.
     */
    authenticate(secret: string | undefined): Caller {
      if (!secret)
        throw new Failure('missing_api_key', 'No API token was sent. Send one as "Authorization: Bearer sk-infer-…".')
      const found = verified(secret)
      if (!found) throw sessionIn(secret) === undefined ? wrongSecret(secret) : sessionEnded()
      return admitted(found)
    },
    /** The same by the id of a token, for requests that the operator lets in without a secret. */
    authenticateId(id: string): Caller {
      const row = store.tokens.verifyId(id)
      if (row) return admitted({ caller: callerOf(row), allowedUntil: 0 })
      throw new Failure('invalid_api_key', `There is no token with the id '${id}'.`)
    },
    /** The token of this secret, in any state; undefined for any other text. */
    find: (secret: string): VerifiableToken | undefined => verified(secret)?.caller.token,
    /** The limits of an organization; undefined: there is none. */
    async limitsOf(organizationId: string): Promise<EffectiveLimits | undefined> {
      const organization = await store.organizations.find(organizationId)
      return organization && plans.limitsOf(organization)
    },
    /** What an organization uses of its limits now. */
    use: (organizationId: string): Promise<OrganizationUse> =>
      store.organizations.use(organizationId, dayStartOf(now())),

    createOrganization: (options: OrganizationOptions): Promise<Organization> =>
      store.organizations.create({ id: newId('org'), plan: 'enterprise', ...options, createdAt: now() }),
    organizations: () => store.organizations.list(),
    organization: (id: string) => store.organizations.find(id),

    /** Forgets verified secrets, so that the next request sees every change once this resolves. */
    forgetVerified,

    /**
     * Creates a token. Throws Failure `not_found` without the organization, `invalid_value` without the user,
     * `insufficient_scope` for scopes beyond his role.
     */
    async issue(options: TokenOptions, by: Actor = theServer): Promise<{ token: TokenRecord; secret: string }> {
      const { token, secret } = draft(options)
      return { token: await store.tokens.create(token, by), secret }
    },
    list: (organizationId: string, page: TokenPage) => store.tokens.list(organizationId, page),
    token: (organizationId: string, id: string) => store.tokens.find(organizationId, id),
    /**
     * Undefined: no such token. `conflict` for a revoked token, and for the last one that can manage tokens unless
     * forced.
     */
    update: (organizationId: string, id: string, change: TokenChange, force = false, by: Actor = theServer) =>
      inOrder(async (): Promise<TokenRecord | undefined> => {
        const token = await store.tokens.find(organizationId, id)
        const ends =
          change.status === 'disabled' ||
          change.scopes?.includes('admin:write') === false ||
          (change.expiresAt !== undefined && change.expiresAt !== null)
        if (token && ends && !force) await requireOtherAdmin(token)
        return store.tokens.update(organizationId, id, change, by)
      }),

    /** Cancels the batches, executions and jobs that a token began. Revoke it first, or it begins more. */
    async cancelWork(organizationId: string, id: string): Promise<TokenWork> {
      const cancelled: TokenWork = { batches: 0, executions: 0, jobs: 0 }
      for (;;) {
        const { batches, executions, jobs } = await store.tokens.cancelWork(organizationId, id, now(), cancelledAtOnce)
        if (batches + executions + jobs === 0) return cancelled
        cancelled.batches += batches
        cancelled.executions += executions
        cancelled.jobs += jobs
      }
    },

    /** Undefined: no such token. `conflict` for the last one that can manage tokens unless forced. */
    revoke: (organizationId: string, id: string, force = false, by: Actor = theServer) =>
      inOrder(async (): Promise<TokenRecord | undefined> => {
        const token = await store.tokens.find(organizationId, id)
        if (token && !force) await requireOtherAdmin(token)
        return token && store.tokens.revoke(organizationId, id, now(), by)
      }),

    /**
     * Creates a new secret under a new id with the same rights; the old one works for `overlapMs` from now (at most a
     * day).
     */
    async rotate(organizationId: string, id: string, overlapMs: number, by: Actor = theServer) {
      const old = await store.tokens.find(organizationId, id)
      if (!old) return undefined
      if (statusAt(old, now()) !== 'active')
        throw conflict(
          `The token '${old.name}' is ${statusAt(old, now())}; only an active token can be rotated. Create a new one.`,
        )
      const lifetime = old.expiresAt === null ? null : now() + (old.expiresAt - old.createdAt)
      const { token, secret } = draft({ ...old, expiresAt: lifetime, createdBy: old.id })
      const previousValidUntil = Math.min(now() + Math.min(overlapMs, maxOverlapMs), old.expiresAt ?? Infinity)
      const created = await inOrder(() => store.tokens.rotate(organizationId, id, token, previousValidUntil, by))
      return created && { token: created, secret, previousValidUntil }
    },

    /** Writes the last-used times that `authenticate` has collected; called regularly and at shutdown. */
    async flushUses(): Promise<void> {
      if (uses.size === 0) return
      const batch = [...uses].map(([id, at]) => ({ id, at }))
      uses.clear()
      await store.tokens
        .touch(batch)
        .catch((cause: unknown) => log.warn('Last uses of tokens were not written', {}, cause))
    },
  }
}
export type Accounts = ReturnType<typeof openAccounts>

/** Throws Failure `token_revoked`, `token_expired` or `organization_disabled` if the token cannot be used at this time. */
function requireUsable(token: VerifiableToken, now: number): void {
  if (token.status === 'revoked' || token.status === 'disabled')
    throw new Failure('token_revoked', `The token '${token.name}' (${token.hint}) is ${token.status}.`)
  if (token.expiresAt !== null && token.expiresAt <= now)
    throw new Failure(
      'token_expired',
      `The token '${token.name}' (${token.hint}) expired at ${new Date(token.expiresAt).toISOString()}.`,
    )
  if (token.organizationStatus !== 'active')
    throw new Failure(
      'organization_disabled',
      `The organization '${token.organizationName}' is ${token.organizationStatus}. Ask the operator of this server.`,
    )
}
