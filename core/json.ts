import { Failure } from './failure.ts'
import { decodedText } from './system-memory.ts'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const colon = 0x3a

/** The deepest nesting that code which walks a value can bear. */
export const maxJsonDepth = 500

export interface JsonBounds {
  /** Nested objects and arrays. */
  depth: number
  /** Members of all objects together. */
  keys: number
}

/**
 * Parses JSON from outside. Depth and number of members are counted on the bytes first, because JSON.parse accepts
 * 200,000 nested brackets, and code that walks such a value overflows the stack.
 * An empty body is `{}`: clients send `Content-Type: application/json` with an empty body.
 * Throws Failure `invalid_json`.
 */
export function parseBoundedJson(bytes: Buffer, bounds: JsonBounds): unknown {
  if (bytes.length === 0) return {}
  checkBounds(bytes, bounds, 'The body')
  try {
    return JSON.parse(decodedText(bytes))
  } catch (cause) {
    throw new Failure('invalid_json', `The body is not valid JSON: ${(cause as Error).message}.`, { cause })
  }
}

/** Throws Failure `invalid_json` if a JSON text exceeds the bounds. `name` begins its message, such as `The line`. */
export function checkBounds(bytes: Buffer, bounds: JsonBounds, name: string): void {
  let depth = 0
  let keys = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === quote) {
      at = endOfString(bytes, at)
    } else if (byte === openBrace || byte === openBracket) {
      if (++depth > bounds.depth)
        throw new Failure('invalid_json', `${name} nests deeper than ${bounds.depth} levels. Flatten it.`)
    } else if (byte === closeBrace || byte === closeBracket) {
      depth--
    } else if (byte === colon && ++keys > bounds.keys) {
      throw new Failure('invalid_json', `${name} has more than ${bounds.keys} members. Send less at once.`)
    }
  }
}

/** Bytes of a string that are read one by one before indexOf is called: most strings end earlier. */
const shortString = 64

/** Returns the position of the closing quote. Native indexOf reads long strings (inline images) at memory speed. */
function endOfString(bytes: Buffer, start: number): number {
  const near = Math.min(bytes.length, start + shortString)
  let from = start + 1
  for (; from < near; from++) {
    const byte = bytes[from]!
    if (byte === quote) return from
    if (byte === backslash) from++
  }
  for (let end = from - 1; ; ) {
    end = bytes.indexOf(quote, end + 1)
    if (end < 0) return bytes.length
    let slashes = 0
    for (let back = end - 1; back >= from && bytes[back] === backslash; back--) slashes++
    if (slashes % 2 === 0) return end
  }
}

/** Whether a value is an object of JSON: neither null nor a list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the value if it is an object, else an empty object. */
export const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})

/** Returns the value if it is a list, else an empty list. */
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/**
 * Returns the value of a JSON text inside a request or an answer; undefined if the text is not JSON, or nests so deep
 * that code which walks the value would overflow the stack.
 */
export function boundedJsonOf(text: string): unknown {
  // An empty body is an empty object, an empty text is not JSON.
  if (text === '') return undefined
  try {
    return parseBoundedJson(Buffer.from(text), { depth: maxJsonDepth, keys: Number.POSITIVE_INFINITY })
  } catch {
    return undefined
  }
}

/** Returns the value of a JSON text; undefined if the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a value has more than this many characters as JSON, without those that escape others. Looks at no more of it. */
export function isLongerThan(value: unknown, max: number): boolean {
  let length = 0
  const exceeds = (one: unknown): boolean => {
    if (typeof one === 'string') length += one.length + 2
    else if (one === null || typeof one !== 'object') length += String(one).length
    else if (Array.isArray(one)) {
      length += one.length + 1
      return length > max || one.some(exceeds)
    } else {
      length += 2
      return Object.entries(one).some(([name, part]) => {
        length += name.length + 4
        return exceeds(part)
      })
    }
    return length > max
  }
  return exceeds(value)
}
