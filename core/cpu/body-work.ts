import { randomUUID } from 'node:crypto'
import { canonicalHash } from '../canonical.ts'
import { Failure } from '../failure.ts'
import { type JsonBounds, parseJson } from '../json.ts'

export interface BodyOptions {
  /** Whether its hash is wanted, for an idempotency key. */
  hash: boolean
  /** Whether the files inside it are taken out. */
  files: boolean
  /** What is wanted as text, because it is only passed on. */
  asText?: TextOptions | undefined
}

/** Members of the body that are objects, and what is left out of those. */
export interface TextOptions {
  members: readonly string[]
  without: readonly string[]
}

/** A request body as a value. */
export interface ReadBody {
  value: unknown
  hash: string | undefined
  /**
   * Of files that came inside the body as `data:` addresses, the bytes by the short address that stands in the value in
   * their place. So they reach the loop without being copied, decoded or looked at there.
   */
  inline: Map<string, Uint8Array<ArrayBuffer>>
  /** What was wanted as text, as JSON; an empty object stands in its place in the value. */
  texts: Map<string, string>
}

/** Shorter ones are as well left where they are. */
const minLength = 16 << 10

/**
 * Parses a body from outside, for a thread as well as for the loop. Throws Failure `invalid_json`, and `invalid_value`
 * for a file that is not base64.
 */
export function readBodyValue(body: Buffer, bounds: JsonBounds, { hash, files, asText }: BodyOptions): ReadBody {
  const value = parseJson(body, bounds)
  // Of what was sent, files and all.
  const hashed = hash ? canonicalHash(value) : undefined
  const inline = new Map<string, Uint8Array<ArrayBuffer>>()
  const left = files ? withoutFiles(value, '', inline) : value
  return { value: left, hash: hashed, inline, texts: asText ? textsIn(left, asText) : new Map<string, string>() }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

function textsIn(value: unknown, { members, without }: TextOptions): Map<string, string> {
  const texts = new Map<string, string>()
  for (const name of isObject(value) ? members : []) {
    const member = (value as Record<string, unknown>)[name]
    if (!isObject(member)) continue
    for (const one of without) delete member[one]
    texts.set(name, JSON.stringify(member))
    ;(value as Record<string, unknown>)[name] = {}
  }
  return texts
}

function withoutFiles(value: unknown, path: string, inline: ReadBody['inline']): unknown {
  if (typeof value === 'string')
    return value.length >= minLength && value.startsWith('data:') ? taken(value, path, inline) : value
  if (value === null || typeof value !== 'object') return value
  for (const [name, part] of Object.entries(value)) {
    const left = withoutFiles(part, path === '' ? name : `${path}.${name}`, inline)
    if (left !== part) (value as Record<string, unknown>)[name] = left
  }
  return value
}

/** `data:image/png;base64,…` becomes `data:image/png;inline=<random>`: a name that nobody can have sent. */
function taken(address: string, path: string, inline: ReadBody['inline']): string {
  const comma = address.indexOf(',', 5)
  const head = address.slice(5, comma < 0 ? 0 : Math.min(comma, 200))
  if (!/;base64$/i.test(head))
    throw new Failure('invalid_value', `'${path}' holds a file that is not base64: \`data:image/png;base64,…\`.`, {
      param: path,
    })
  const type = head.slice(0, -';base64'.length).replace(/[^\w/+.;=-]/g, '')
  const name = `data:${type};inline=${randomUUID()}`
  const decoded = Buffer.from(address.slice(comma + 1), 'base64')
  // Its own memory, so that it can be given to another thread.
  inline.set(name, new Uint8Array(decoded))
  return name
}
