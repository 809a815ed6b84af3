import type { KeyObject } from 'node:crypto'
import { isId } from '../ids.ts'
import { isFuture, isSame, signature } from '../signed-text.ts'

/** Maximum lifetime of a signed URL. */
export const longestLifetimeMs = 7 * 86_400_000

/** Description of the file in an upload URL. It is signed, so that the server can trust it when the upload comes. */
export interface Upload {
  id: string
  organizationId: string
  name: string
  contentType: string
  /** Milliseconds from the upload until the file is removed; null: never. */
  keptMs: number | null
}

const readText = (id: string, expires: string): string => `GET\n/files/${id}\n${expires}`
/** As JSON, because a name may contain any character and two different uploads must never have the same text. */
const uploadText = (upload: Upload, expires: string): string =>
  `PUT\n/files/${upload.id}\n${expires}\n${JSON.stringify([upload.organizationId, upload.name, upload.contentType, upload.keptMs])}`

const storageText = (organizationId: string, expires: string): string => `STORE\n${organizationId}\n${expires}`

/** `/files/<id>/<name>`: the id identifies the file, the name is only for saving it. */
const pathOf = (id: string, name: string): string => `/files/${id}/${encodeURIComponent(name)}`

/**
 * Returns when a URL that is made now expires, in Unix seconds. Rounded down to a 24th of the lifetime, so that clients
 * that soon request the same file again get the same URL and can use their cache.
 */
export function expiryOf(now: number, lifetimeMs: number): number {
  const lifetime = Math.min(lifetimeMs, longestLifetimeMs)
  const step = Math.max(1000, lifetime / 24)
  return Math.max(Math.floor((Math.floor(now / step) * step + lifetime) / 1000), Math.floor(now / 1000) + 1)
}

/** Makes and checks signed URLs, with which a client reads or uploads a file without a token. */
export const openFileUrls = (key: KeyObject) => ({
  /** Returns the URL with which anybody can read the file until it expires. */
  read(file: { id: string; name: string }, origin: string, lifetimeMs: number, now = Date.now()): string {
    const expires = expiryOf(now, lifetimeMs)
    return `${origin}${pathOf(file.id, file.name)}?exp=${expires}&sig=${signature(key, readText(file.id, String(expires)))}`
  },
  /** Whether the signature of such a URL is valid and has not expired. Never throws. */
  mayRead: (id: string, expires: string, given: string, now = Date.now()): boolean =>
    isId(id) && isFuture(expires, now) && isSame(given, signature(key, readText(id, expires))),
  /** Returns a token that allows only to store files of the organization until `expires` (Unix seconds). */
  storageToken: (organizationId: string, expires: number): string =>
    `${organizationId}.${expires}.${signature(key, storageText(organizationId, String(expires)))}`,
  /** Returns the organization of a valid storage token; undefined for an invalid or expired one. Never throws. */
  mayStore: (token: string, now = Date.now()): string | undefined => {
    const [organizationId = '', expires = '', given = ''] = token.split('.')
    const plausible = isId(organizationId) && isFuture(expires, now)
    return plausible && isSame(given, signature(key, storageText(organizationId, expires))) ? organizationId : undefined
  },
  /** Returns the URL to which a client can send the bytes of a new file, once. */
  upload(upload: Upload, origin: string, lifetimeMs: number, now = Date.now()): string {
    const expires = String(Math.floor((now + Math.min(lifetimeMs, longestLifetimeMs)) / 1000))
    const query = new URLSearchParams({
      org: upload.organizationId,
      type: upload.contentType,
      kept: upload.keptMs === null ? '' : String(upload.keptMs),
      exp: expires,
      sig: signature(key, uploadText(upload, expires)),
    })
    return `${origin}${pathOf(upload.id, upload.name)}?${query.toString()}`
  },
  /** Returns the file description of a valid upload URL; undefined for an invalid or expired one. Never throws. */
  mayUpload: (id: string, name: string, query: URLSearchParams, now = Date.now()): Upload | undefined => {
    const parameter = (field: string) => query.get(field) ?? ''
    const expires = parameter('exp')
    const kept = parameter('kept')
    if (!isId(id) || !isId(parameter('org')) || !/^\d{0,15}$/.test(kept)) return undefined
    const sent = { organizationId: parameter('org'), contentType: parameter('type') }
    const upload = { id, name, ...sent, keptMs: kept === '' ? null : Number(kept) }
    const isValid = isFuture(expires, now) && isSame(parameter('sig'), signature(key, uploadText(upload, expires)))
    return isValid ? upload : undefined
  },
})
export type FileUrls = ReturnType<typeof openFileUrls>
