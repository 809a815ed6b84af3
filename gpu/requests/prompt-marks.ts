import { createHash } from 'node:crypto'

/** The value of these members is the prompt. */
const starts = ['"messages":', '"prompt":']
const [quote, backslash, opening, closing] = [0x22, 0x5c, 0x5b, 0x5d]
/** Bytes of the shortest prefix that is marked; each next one is twice as long. */
const firstPower = 384
const mostPowers = 11
/** Later bytes of a body are not looked at: so many take about a millisecond. */
const maxBytes = 512 << 10
const digits = 12

/** What is known of a prompt after it was sent: keyed hashes of its beginnings. */
export interface PromptMarks {
  /** Bytes of the whole prompt, and their hash; 0 and empty where it is longer than half a megabyte. */
  length: number
  end: string
  /** Hashes of its first 384, 768, 1,536 … bytes. */
  powers: readonly string[]
}

/** The marks of a prompt, and the hashes of its beginnings of other lengths. */
export interface MarkedPrompt extends PromptMarks {
  at: ReadonlyMap<number, string>
}

/**
 * Marks the prompt in the body of a chat or completion: the text of its `messages` or `prompt` without the last bracket or
 * quote, so that a continued conversation begins with the one before. `lengths`: of other prompts, to be compared with
 * their ends. Undefined for a body without a prompt.
 */
export function promptMarks(
  body: string | Uint8Array,
  key: string,
  lengths: Iterable<number> = [],
): MarkedPrompt | undefined {
  const bytes =
    typeof body === 'string'
      ? Buffer.from(body.slice(0, maxBytes)).subarray(0, maxBytes)
      : Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, maxBytes))
  const start = startOf(bytes)
  if (start === undefined) return undefined
  const end = endOf(bytes, start)
  const most = (end ?? bytes.length) - start - 1
  const wanted = new Set([...powerLengths, ...lengths].filter(length => length <= most))
  if (end !== undefined) wanted.add(most)
  const hash = createHash('sha256').update(key)
  const at = new Map<number, string>()
  let from = 0
  for (const length of [...wanted].toSorted((a, b) => a - b)) {
    hash.update(bytes.subarray(start + 1 + from, start + 1 + length))
    at.set(length, hash.copy().digest('hex').slice(0, digits))
    from = length
  }
  const powers = powerLengths.flatMap(length => at.get(length) ?? [])
  return { length: end === undefined ? 0 : most, end: end === undefined ? '' : at.get(most)!, powers, at }
}

const powerLengths = Array.from({ length: mostPowers }, (_, power) => firstPower << power)

/** How many bytes a prompt is known to have in common with an earlier one: at least so many are equal. */
export function commonBytes(prompt: MarkedPrompt, earlier: PromptMarks): number {
  if (earlier.length > 0 && prompt.at.get(earlier.length) === earlier.end) return earlier.length
  let power = 0
  while (power < earlier.powers.length && earlier.powers[power] === prompt.powers[power]) power++
  return power === 0 ? 0 : powerLengths[power - 1]!
}

/** How many bytes of a prompt its marks cover. */
export const lengthOf = ({ length, powers }: PromptMarks): number => length || (powerLengths[powers.length - 1] ?? 0)

/** Where the value of the prompt begins; undefined if it is neither a list nor a text. */
function startOf(bytes: Buffer): number | undefined {
  for (const name of starts) {
    const at = bytes.indexOf(name)
    if (at < 0) continue
    const first = bytes[at + name.length]
    return first === opening || first === quote ? at + name.length : undefined
  }
  return undefined
}

/** Where the last byte of the list or text at `start` is; undefined if it is beyond the end. */
function endOf(bytes: Buffer, start: number): number | undefined {
  const quotes = { left: maxQuotes }
  if (bytes[start] === quote) return textEnd(bytes, start, quotes)
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) {
      const end = textEnd(bytes, at, quotes)
      if (end === undefined) return undefined
      at = end
    } else if (byte === opening) depth++
    else if (byte === closing && --depth === 0) return at
  }
  return undefined
}

/** Quotes that are looked at in one body: each takes some 50 ns. */
const maxQuotes = 20_000

function textEnd(bytes: Buffer, start: number, quotes: { left: number }): number | undefined {
  let at = start
  while (quotes.left > 0) {
    quotes.left--
    at = bytes.indexOf(quote, at + 1)
    if (at < 0) return undefined
    let escapes = 0
    while (bytes[at - 1 - escapes] === backslash) escapes++
    if (escapes % 2 === 0) return at
  }
  return undefined
}
