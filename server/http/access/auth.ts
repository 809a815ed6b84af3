import type { IncomingMessage } from 'node:http'
import type { Accounts, Caller } from '../../../core/accounts/accounts.ts'
import type { AddressLimiter } from '../../../core/accounts/limiter.ts'
import { Failure } from '../../../core/failure.ts'
import type { Scope } from '../../../core/store/store.ts'
import { peerOf } from '../connection/peer.ts'

/**
 * Who may call a route: a token with one of the four scopes, `public` (no token), or `loopback` (a connection from this
 * machine that no proxy forwarded, or else the scope admin:read).
 */
export type Access = Scope | 'public' | 'loopback'

/** The secret that a request carries, under any of the names that clients use: Bearer, Key, X-API-Key, api-key. */
export function credentialOf(headers: IncomingMessage['headers']): string | undefined {
  const authorization = headers.authorization
  if (authorization) {
    const space = authorization.indexOf(' ')
    const scheme = authorization.slice(0, space).toLowerCase()
    if (scheme === 'bearer' || scheme === 'key') return authorization.slice(space + 1).trim()
    // Any other scheme is meant for a proxy in front; the token may be in another header.
  }
  const given = headers['x-api-key'] ?? headers['api-key']
  return typeof given === 'string' ? given : undefined
}

const loopback = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/

const byProxy = /^(?:forwarded|x-forwarded(?:-.*)?|x-real-ip|via)$/

/** Whether a request comes directly from this machine: not through a proxy, and not from a page of another site. */
export const isLocal = (req: IncomingMessage): boolean =>
  loopback.test(peerOf(req).remoteAddress ?? '') &&
  req.headers['sec-fetch-site'] !== 'cross-site' &&
  !Object.keys(req.headers).some(name => byProxy.test(name))

/**
 * Returns the caller that the token or session of the request authenticates, or undefined if the route needs none; its scopes are
 * not checked. Throws Failure: the codes of `accounts.authenticate`, or `rate_limit` for a client address that keeps
 * sending wrong tokens.
 */
export function authenticate(
  { req, credential }: { req: IncomingMessage; credential: string | undefined },
  access: Access,
  accounts: Accounts,
  from: { wrong: AddressLimiter; address: string },
): Caller | undefined {
  if (access === 'public') return undefined
  if (access === 'loopback' && credential === undefined && isLocal(req)) return undefined
  return limitingGuesses(() => accounts.authenticate(credential), from)
}

/**
 * Returns what `check` returns. Counts an `invalid_api_key` that it throws against the client's address, and throws
 * `rate_limit` instead for an address that keeps sending wrong tokens.
 */
export function limitingGuesses<T>(check: () => T, { wrong, address }: { wrong: AddressLimiter; address: string }) {
  try {
    return check()
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'invalid_api_key') throw thrown
    // Only wrong tokens are limited: guessing from an address must not lock out right tokens from the same address.
    const waitMs = wrong.blockedFor(address)
    wrong.count(address)
    if (waitMs > 0)
      throw new Failure(
        'rate_limit',
        'Too many wrong API tokens came from this address. Wait, then send a valid token.',
        {
          retryAfterMs: waitMs,
        },
      )
    throw thrown
  }
}

/** Returns the failure for a token that lacks the scope of a route; undefined if it has the scope. */
export function scopeRefusal({ scopes, token }: Caller, access: Exclude<Access, 'public'>): Failure | undefined {
  const scope: Scope = access === 'loopback' ? 'admin:read' : access
  if (scopes.includes(scope)) return undefined
  return new Failure(
    'insufficient_scope',
    `The token '${token.name}' lacks the scope ${scope}, which this endpoint needs.`,
    { facts: { required_scope: scope } },
  )
}
