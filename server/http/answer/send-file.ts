import { Failure } from '../../../core/failure.ts'
import type { FileRecord } from '../../../core/store/store.ts'
import type { ClientExchange } from '../request/exchange.ts'
import type { Owners } from '../request/owners.ts'
import { piecesOf, type Range, sendPieces } from './send-pieces.ts'

const form = /^bytes\s*=\s*(?:(\d{1,15})\s*-\s*(\d{1,15})?|-\s*(\d{1,15}))\s*$/i

/**
 * Returns the range that a Range header requests of a file of `size` bytes. Undefined means the whole file: without the
 * header, with a malformed one (ignored, as RFC 9110 requires), or with several ranges, for which the whole is allowed.
 */
export function rangeOf(header: string | undefined, size: number): Range | 'unsatisfiable' | undefined {
  const match = header === undefined ? null : form.exec(header)
  if (!match) return undefined
  const [, from, to, suffix] = match
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  const last = to === undefined ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== undefined && Number(to) < first) return undefined
  return first >= size ? 'unsatisfiable' : { first, last }
}

/** Whether an If-None-Match header has this tag. Weak tags match too, as RFC 9110 requires. */
export const noneMatch = (header: string | undefined, etag: string): boolean =>
  header !== undefined &&
  (header.trim() === '*' || header.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag))

/** Whether a Range may be answered: always without If-Range, and with it only if it is exactly this tag. */
export const rangeApplies = (ifRange: string | undefined, etag: string): boolean =>
  ifRange === undefined || ifRange.trim() === etag

/** Further answers of routes that send a file, for the reference. */
export const fileAnswers = {
  206: { description: 'The bytes of the range.', media: ['*/*'] },
  304: { description: 'The file is the one that `If-None-Match` names.' },
  416: { description: 'The range begins after the end of the file. `Content-Range` has its length.' },
}

/** Returns a Content-Disposition with the name in ASCII for old clients and in RFC 8187 encoding for others. */
function disposition(name: string, kind: 'inline' | 'attachment' = 'inline') {
  const plain = name.replace(/[^A-Za-z0-9._ -]/g, '_')
  const exact = encodeURIComponent(name).replace(/['()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
  return `${kind}; filename="${plain}"; filename*=UTF-8''${exact}`
}

/**
 * Answers with the bytes of a file, or with the part that the request names: one Range, If-Range and If-None-Match. `more`
 * are further headers, flat. Throws Failure `not_found` if the bytes are missing.
 */
export async function sendFile(
  exchange: ClientExchange,
  file: FileRecord,
  { kind, maxAge, more = [] }: { kind: 'inline' | 'attachment'; maxAge: number; more?: readonly string[] },
  { files, log }: Owners<'files' | 'log'>,
): Promise<void> {
  const { req, res } = exchange
  const etag = `"${file.sha256}"`
  const head = (status: number, own: string[] = []) =>
    exchange.head(status, file.contentType, [
      'etag',
      etag,
      'accept-ranges',
      'bytes',
      'cache-control',
      `private, max-age=${maxAge}`,
      'content-disposition',
      disposition(file.name, kind),
      'content-security-policy',
      "default-src 'none'; sandbox",
      ...more,
      ...own,
    ])
  if (noneMatch(req.headers['if-none-match'], etag)) {
    head(304)
    return void res.end()
  }
  const ifRange = req.headers['if-range']
  const requested =
    req.method === 'GET' && rangeApplies(typeof ifRange === 'string' ? ifRange : undefined, etag)
      ? rangeOf(req.headers.range, file.bytes)
      : undefined
  if (requested === 'unsatisfiable') {
    head(416, ['content-range', `bytes */${file.bytes}`, 'content-length', '0'])
    return void res.end()
  }
  const handle = await files.open(file)
  if (!handle) {
    log.error('The bytes of a file are missing or damaged', { file: file.id })
    throw new Failure('not_found', `The file ${file.id} was not found.`)
  }
  await using _ = handle
  const range = requested ?? { first: 0, last: file.bytes - 1 }
  const length = ['content-length', String(range.last - range.first + 1)]
  if (requested) head(206, ['content-range', `bytes ${range.first}-${range.last}/${file.bytes}`, ...length])
  else head(200, length)
  if (req.method === 'HEAD') return void res.end()
  await sendPieces(exchange, piecesOf(exchange, handle, range))
}
