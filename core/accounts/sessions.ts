import { createHash, randomBytes } from 'node:crypto'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { SessionRecord, Store, VerifiableToken } from '../store/store.ts'

/** A session ends this long after its last request, milliseconds. */
export const sessionMs = 12 * 3_600_000
/** How often the end of a session that is used is moved, milliseconds: not with each request. */
const extendMs = 60_000
/** How long a one-time code is valid, milliseconds. */
export const codeMs = 120_000
/** Codes that are valid at the same time, of one token and of all; another one ends the oldest. */
const maxCodes = { ofToken: 10, ofAll: 1_000 }

/**
 * Where a credential begins with it, the rest is the id of a session. No header can contain it, so an id that somebody
 * sends as an API token is only a wrong token.
 */
const sessionMark = '\0session:'

/** Returns the credential of a session, for `Accounts.authenticate`. Only for ids from a cookie that may be used. */
export const sessionCredential = (id: string): string => sessionMark + id

/** Returns the id of the session that a credential names; undefined for a token. */
export const sessionIn = (credential: string): string | undefined =>
  credential.startsWith(sessionMark) ? credential.slice(sessionMark.length) : undefined

/** The failure of a request with a session that has ended. */
export const sessionEnded = (): Failure => new Failure('missing_api_key', 'The session has ended. Sign in again.')

const digestOf = (id: string): Buffer => createHash('sha256').update(id).digest()
const newSecret = (): string => randomBytes(32).toString('base64url')

/**
 * Sessions of the web console, and the one-time codes that begin one. A session stands for a token: it has exactly its
 * rights, and ends with it. Ids have 256 random bits, and only their digests are stored.
 */
export function openSessions(options: { store: Pick<Store, 'sessions' | 'tokens'>; log: Log; now?: () => number }) {
  const { store, log, now = Date.now } = options
  /** By the digest of the code; oldest first. */
  const codes = new Map<string, { tokenId: string; expiresAt: number }>()
  /** Digests and new ends of sessions that are used. */
  const extended = new Map<string, { digest: Uint8Array; expiresAt: number }>()

  function valid(id: string): SessionRecord | undefined {
    const found = store.sessions.find(digestOf(id))
    if (!found) return undefined
    const until = extended.get(Buffer.from(found.digest).toString('base64'))?.expiresAt ?? found.expiresAt
    return until > now() ? { ...found, expiresAt: until } : undefined
  }

  return {
    /** Begins a session of a token, always with a new id. */
    async begin(tokenId: string): Promise<{ id: string; expiresAt: number }> {
      const id = newSecret()
      const createdAt = now()
      const expiresAt = createdAt + sessionMs
      await store.sessions.add({ digest: digestOf(id), tokenId, createdAt, expiresAt })
      return { id, expiresAt }
    },
    /** The token of a session, whose end this use moves. Undefined: there is no such session, or it has ended. */
    use(id: string): { tokenId: string; expiresAt: number } | undefined {
      const found = valid(id)
      if (!found) return undefined
      const expiresAt = now() + sessionMs
      if (expiresAt - found.expiresAt < extendMs) return found
      extended.set(Buffer.from(found.digest).toString('base64'), { digest: found.digest, expiresAt })
      return { ...found, expiresAt }
    },
    /** The token of a session, whose end this moves, in any state; undefined if the session has ended. */
    tokenOf(id: string): VerifiableToken | undefined {
      const used = this.use(id)
      return used && store.tokens.verifyId(used.tokenId)
    },
    /** Ends a session. Without one it writes nothing, because anybody can send an id. */
    async end(id: string): Promise<void> {
      const digest = digestOf(id)
      if (!store.sessions.find(digest)) return
      extended.delete(digest.toString('base64'))
      await store.sessions.remove(digest)
    },
    /** Stores the new ends of sessions that were used; called regularly and at shutdown. */
    async flush(): Promise<void> {
      if (extended.size === 0) return
      const these = [...extended.values()]
      await store.sessions
        .extend(these)
        .catch((cause: unknown) => log.warn('Ends of sessions were not written', {}, cause))
      for (const { digest, expiresAt } of these) {
        const key = Buffer.from(digest).toString('base64')
        if (extended.get(key)?.expiresAt === expiresAt) extended.delete(key)
      }
    },

    /** A code that begins one session of the token within two minutes. */
    createCode(tokenId: string): { code: string; expiresAt: number } {
      for (const [digest, { expiresAt }] of codes) {
        if (expiresAt > now() && codes.size < maxCodes.ofAll) break
        codes.delete(digest)
      }
      // One token must not end the codes of others.
      const own = [...codes].filter(([, one]) => one.tokenId === tokenId)
      for (const [digest] of own.slice(0, Math.max(0, own.length + 1 - maxCodes.ofToken))) codes.delete(digest)
      const code = newSecret()
      const expiresAt = now() + codeMs
      codes.set(digestOf(code).toString('base64'), { tokenId, expiresAt })
      return { code, expiresAt }
    },
    /** The token of a code, which cannot be used again. Throws Failure `invalid_api_key`. */
    useCode(code: string): string {
      const digest = digestOf(code).toString('base64')
      const found = codes.get(digest)
      codes.delete(digest)
      if (found && found.expiresAt > now()) return found.tokenId
      throw new Failure(
        'invalid_api_key',
        'This link was used before or is older than two minutes. Create another one with "infer console", or sign in with a token.',
      )
    },
  }
}
export type Sessions = ReturnType<typeof openSessions>
