import { randomUUID } from 'node:crypto'
import { canonicalHash } from '../canonical.ts'
import { bytesOfBase64, contentStart, isDataUrl } from '../data-url.ts'
import { invalid } from '../failure.ts'
import { isObject, type JsonBounds, objectOf, parseBoundedJson } from '../json.ts'

export interface BodyOptions {
  /** Whether to compute the hash of the body, for an idempotency key. */
  hash: boolean
  /** Whether to extract the files inside the body. */
  files: boolean
  /** Which members to return as text, because they are only passed on. */
  asText?: BodyTextOptions | undefined
}

/** Members of the body that are objects, and which of their own members to remove. */
export interface BodyTextOptions {
  members: readonly string[]
  without: readonly string[]
}

/** A request body as a value. */
export interface ReadBody {
  value: unknown
  hash: string | undefined
  /**
   * Bytes of the files that the body has as `data:` URLs, by the short URL that replaces each in the value. So the main
   * thread neither copies nor decodes them.
   */
  inline: Map<string, Uint8Array<ArrayBuffer>>
  /** JSON text of the members of `asText`; an empty object replaces each in the value. */
  texts: Map<string, string>
}

/** Shorter `data:` URLs stay in the value, in characters. */
const minLength = 16 << 10

/**
 * Parses a body from outside, in a thread or in the event loop. Throws Failure `invalid_json`, and `invalid_value` for a
 * file that is not base64.
 */
export function readBodyValue(body: Buffer, bounds: JsonBounds, { hash, files, asText }: BodyOptions): ReadBody {
  const value = parseBoundedJson(body, bounds)
  // The hash covers the body as it was sent, with its files.
  const hashed = hash ? canonicalHash(value) : undefined
  const inline = new Map<string, Uint8Array<ArrayBuffer>>()
  const short = files ? withoutFiles(value, '', inline) : value
  return { value: short, hash: hashed, inline, texts: asText ? textsIn(short, asText) : new Map<string, string>() }
}

function textsIn(value: unknown, { members, without }: BodyTextOptions): Map<string, string> {
  const texts = new Map<string, string>()
  const objects = objectOf(value)
  for (const name of members) {
    const member = objects[name]
    if (!isObject(member)) continue
    for (const one of without) delete member[one]
    texts.set(name, JSON.stringify(member))
    objects[name] = {}
  }
  return texts
}

function withoutFiles(value: unknown, path: string, inline: ReadBody['inline']): unknown {
  if (typeof value === 'string')
    return value.length >= minLength && isDataUrl(value) ? extracted(value, path, inline) : value
  if (value === null || typeof value !== 'object') return value
  for (const [name, part] of Object.entries(value)) {
    const short = withoutFiles(part, path === '' ? name : `${path}.${name}`, inline)
    if (short !== part) (value as Record<string, unknown>)[name] = short
  }
  return value
}

/** Replaces `data:image/png;base64,…` by `data:image/png;inline=<random>`, a name that no client can have sent. */
function extracted(url: string, path: string, inline: ReadBody['inline']): string {
  const start = contentStart(url)
  // A text may begin like a URL; a field for media refuses it.
  if (start === undefined) return url
  const bytes = bytesOfBase64(url.slice(start))
  if (!bytes) throw invalid(path, `'${path}' holds a file that is not base64: \`data:image/png;base64,…\`.`)
  const type = /^\s*data:([\w/+.-]*)/i.exec(url)?.[1] ?? ''
  const name = `data:${type};inline=${randomUUID()}`
  inline.set(name, bytes)
  return name
}
