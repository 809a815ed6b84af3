import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { isId } from '../ids.ts'

/** No address works for longer, whatever is asked for. */
export const longestLifetimeMs = 7 * 86_400_000

/** What an address for an upload says about the file that will be. Signed, so that it can be believed when it comes back. */
export interface Upload {
  id: string
  organizationId: string
  name: string
  contentType: string
  /** Milliseconds from its arrival until it is removed; null: never. */
  keptMs: number | null
}

const signature = (key: KeyObject, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

/** Compared as text: two spellings of the same bytes are not the same signature. */
function same(given: string, right: string): boolean {
  const one = Buffer.from(given)
  const other = Buffer.from(right)
  return one.length === other.length && timingSafeEqual(one, other)
}

const isTime = /^[1-9]\d{0,11}$/
const future = (expires: string, now: number): boolean => isTime.test(expires) && Number(expires) * 1000 > now

const readText = (id: string, expires: string): string => `GET\n/files/${id}\n${expires}`
/** JSON, because a name may hold any character and no two uploads may be signed by one text. */
const uploadText = (upload: Upload, expires: string): string =>
  `PUT\n/files/${upload.id}\n${expires}\n${JSON.stringify([upload.organizationId, upload.name, upload.contentType, upload.keptMs])}`

const storageText = (organizationId: string, expires: string): string => `STORE\n${organizationId}\n${expires}`

/** `/files/<id>/<name>`: the name is for whoever saves it, the id alone says what is meant. */
const pathOf = (id: string, name: string): string => `/files/${id}/${encodeURIComponent(name)}`

/**
 * When an address made now ends, Unix seconds. Rounded down to a 24th of the lifetime, so that who asks for the same
 * file again soon gets the same address and need not load it anew.
 */
export function expiryOf(now: number, lifetimeMs: number): number {
  const lifetime = Math.min(lifetimeMs, longestLifetimeMs)
  const step = Math.max(1000, lifetime / 24)
  return Math.max(Math.floor((Math.floor(now / step) * step + lifetime) / 1000), Math.floor(now / 1000) + 1)
}

/** Signed addresses, by which a file is read or sent without a token. The signature is the right to do so. */
export const openAddresses = (key: KeyObject) => ({
  /** The address under which anybody can read the file until it ends. */
  read(file: { id: string; name: string }, origin: string, lifetimeMs: number, now = Date.now()): string {
    const expires = expiryOf(now, lifetimeMs)
    return `${origin}${pathOf(file.id, file.name)}?exp=${expires}&sig=${signature(key, readText(file.id, String(expires)))}`
  },
  /** Whether such an address was made here and has not ended. Never throws. */
  mayRead: (id: string, expires: string, given: string, now = Date.now()): boolean =>
    isId(id) && future(expires, now) && same(given, signature(key, readText(id, expires))),
  /** A token with which files of the organization can be stored until `expires` (Unix seconds), and nothing else. */
  storageToken: (organizationId: string, expires: number): string =>
    `${organizationId}.${expires}.${signature(key, storageText(organizationId, String(expires)))}`,
  /** The organization of such a token that was made here and has not expired; undefined otherwise. Never throws. */
  mayStore: (token: string, now = Date.now()): string | undefined => {
    const [organizationId = '', expires = '', given = ''] = token.split('.')
    const right = isId(organizationId) && future(expires, now)
    return right && same(given, signature(key, storageText(organizationId, expires))) ? organizationId : undefined
  },
  /** The address to which the bytes of a file that does not exist yet can be sent, once. */
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
  /** What that address says, where it was made here and has not ended; undefined otherwise. Never throws. */
  mayUpload: (id: string, name: string, query: URLSearchParams, now = Date.now()): Upload | undefined => {
    const parameter = (field: string) => query.get(field) ?? ''
    const expires = parameter('exp')
    const kept = parameter('kept')
    if (!isId(id) || !isId(parameter('org')) || !/^\d{0,15}$/.test(kept)) return undefined
    const upload: Upload = {
      id,
      organizationId: parameter('org'),
      name,
      contentType: parameter('type'),
      keptMs: kept === '' ? null : Number(kept),
    }
    return future(expires, now) && same(parameter('sig'), signature(key, uploadText(upload, expires)))
      ? upload
      : undefined
  },
})
export type Addresses = ReturnType<typeof openAddresses>
