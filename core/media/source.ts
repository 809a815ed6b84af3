import { contentStart, isDataUrl } from '../data-url.ts'
import { invalidValue } from '../failure.ts'
import { isId } from '../ids.ts'

/** Where the bytes of media come from. */
export type Source =
  | { from: 'http'; url: string }
  /** The content of a data: URL, in base64. */
  | { from: 'data'; text: string }
  /** The content of a data: URL that a thread has decoded. */
  | { from: 'bytes'; content: Uint8Array }
  /** An uploaded file on the disk that is not stored yet, such as a file of a form. */
  | { from: 'path'; path: string; bytes: number }
  | { from: 'file'; id: string }
  /** A signed URL of this server. Its signature is not checked yet. */
  | { from: 'link'; id: string; exp: string; sig: string }

/**
 * Parses a value; `origins` are those of this server. Pure. Throws Failure `invalid_value` for a value that is neither a
 * URL nor the id of a file.
 */
export function readSource(value: string, field: string, origins: readonly string[]): Source {
  if (value.startsWith('file-') && isId(value)) return { from: 'file', id: value }
  if (isDataUrl(value)) {
    const start = contentStart(value)
    if (start === undefined)
      throw invalidValue(`'${field}' must be a data: URL of the form data:<type>;base64,<content>.`)
    return { from: 'data', text: value.slice(start) }
  }
  if (!/^https?:/i.test(value) || value.length > 2048 || !URL.canParse(value))
    throw invalidValue(
      `'${field}' must be an http(s) URL of at most 2048 characters, a data: URL or the id of a file (file-…).`,
    )
  const url = new URL(value)
  // Work without an HTTP request has an empty origin.
  if (!origins.some(origin => origin !== '' && new URL(origin).origin === url.origin))
    return { from: 'http', url: value }
  // This server never fetches from itself. A path that names no file gets an id that does not exist.
  const id = /^\/files\/(file-[0-9A-Z]{26})(?:\/[^/]*)?$/.exec(url.pathname)?.[1] ?? ''
  return { from: 'link', id, exp: url.searchParams.get('exp') ?? '', sig: url.searchParams.get('sig') ?? '' }
}

/**
 * Returns the origins of this server: that of the request, `public_url`, and the origin of `value` if its host is in
 * `allowed_hosts`, with any scheme and port, because a URL may be made under one name and used under another.
 */
export function ownOrigins(
  value: string,
  origin: string,
  { public_url, allowed_hosts }: { public_url?: string | undefined; allowed_hosts: readonly string[] },
): string[] {
  const own = [origin, public_url ?? origin]
  const url = /^https?:/i.test(value) && value.length <= 2048 ? URL.parse(value) : null
  if (url && allowed_hosts.some(host => host.toLowerCase().replace(/:\d+$/, '') === url.hostname)) own.push(url.origin)
  return own
}

/** Returns the failure for the content of a data: URL that is not base64. */
export const noBase64 = (text: string, field: string) =>
  invalidValue(
    /\S/.test(text)
      ? `'${field}' is a data: URL whose content is not base64.`
      : `'${field}' is a data: URL without content: the file is empty.`,
  )

export const megabytes = (bytes: number): string => `${Math.floor(bytes / 1_048_576)} MB`
