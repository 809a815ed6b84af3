import { Failure } from '../failure.ts'
import { isId } from '../ids.ts'

/** Where something that was sent is to be had. */
export type Source =
  | { from: 'http'; url: string }
  /** `bytes` is how many there are at least when it is decoded. */
  | { from: 'data'; text: string; bytes: number }
  /** The content of one that was decoded already, in another thread. */
  | { from: 'bytes'; content: Uint8Array }
  /** A file on the disk that is no file of ours yet, as one of a form. */
  | { from: 'path'; path: string; bytes: number }
  | { from: 'file'; id: string }
  /** An address of ours; whether its signature holds is not known yet. */
  | { from: 'link'; id: string; exp: string; sig: string }

const dataUrl = /^data:([\w.+-]+\/[\w.+-]+)?((?:;[\w.+-]+=[\w.+-]+)*);base64,/i

/**
 * Tells by its form what a value names; `origins` are ours. Pure: nothing is looked up. Throws Failure `invalid_value`
 * for what is neither an address nor a file.
 */
export function readSource(value: string, field: string, origins: readonly string[]): Source {
  if (value.startsWith('file-') && isId(value)) return { from: 'file', id: value }
  if (/^data:/i.test(value)) {
    const head = dataUrl.exec(value.slice(0, 512))?.[0]
    if (head === undefined)
      throw new Failure('invalid_value', `'${field}' is a data: URL in another form than data:<type>;base64,<content>.`)
    return {
      from: 'data',
      text: value.slice(head.length),
      bytes: Math.floor(((value.length - head.length) * 3) / 4) - 2,
    }
  }
  if (!/^https?:/i.test(value) || value.length > 2048 || !URL.canParse(value))
    throw new Failure(
      'invalid_value',
      `'${field}' must be an http(s) address of at most 2048 characters, a data: URL or the id of a file (file-…).`,
    )
  const url = new URL(value)
  // Whoever works for nobody's request has no origin.
  if (!origins.some(origin => origin !== '' && new URL(origin).origin === url.origin))
    return { from: 'http', url: value }
  // Of ourselves nothing is fetched over the network: a path that is no file of ours is an id that does not exist.
  const id = /^\/files\/(file-[0-9A-Z]{26})(?:\/[^/]*)?$/.exec(url.pathname)?.[1] ?? ''
  return { from: 'link', id, exp: url.searchParams.get('exp') ?? '', sig: url.searchParams.get('sig') ?? '' }
}

/**
 * Returns our own origins, as far as `value` may name one: that of the request, `public_url`, and every name in
 * `allowed_hosts` under any scheme and port, because a file may be stored under another name than it is used under.
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

/** The content of a data: URL. Throws Failure `invalid_value` where it is not base64. */
export function bytesOfDataUrl(text: string, field: string): Buffer {
  const bytes = Buffer.from(text, 'base64')
  const digits = text.replace(/=+$/, '').length
  if (bytes.length === 0 || bytes.length !== Math.floor((digits * 3) / 4))
    throw new Failure('invalid_value', `'${field}' is a data: URL whose content is not base64.`)
  return bytes
}

export const megabytes = (bytes: number): string => `${Math.floor(bytes / 1_048_576)} MB`
