import { boundedJsonOf, maxJsonDepth } from '../../json.ts'

/** How many places in a text are tried where JSON may begin, besides blocks of code. */
const maxPlaces = 200
/** How often the length of a text is searched for the ends of values, at most: the places of a hostile one have none. */
const maxSearches = 8

const codeBlock = /```[^\n`]*\n([\s\S]*?)```/g

/** The JSON in a text: which value it is, and where it stood. */
export interface FoundJson {
  value: unknown
  from: 'text' | 'block' | 'prose'
  /** Characters of it. */
  length: number
}

/**
 * Yields the JSON values of a model's answer: the whole text, blocks of code, then objects and lists within prose. Repairs
 * only what has one meaning: a comma before a closing bracket, and line breaks and tabs within a text.
 */
export function* findJson(text: string): Generator<FoundJson, void> {
  const whole = jsonIn(text.trim())
  if (whole) return yield { ...whole, from: 'text' }
  for (const [, block = ''] of text.matchAll(codeBlock)) {
    const found = jsonIn(block.trim())
    if (found) yield { ...found, from: 'block' }
  }
  let [tried, searched] = [0, 0]
  for (let at = nextOpening(text, 0); at >= 0 && tried < maxPlaces; tried++) {
    if (searched > maxSearches * text.length) return
    const { end, isWhole } = endOfValue(text, at)
    searched += end - at
    const found = isWhole ? jsonIn(text.slice(at, end)) : undefined
    if (found) yield { ...found, from: 'prose' }
    at = nextOpening(text, found ? end : at + 1)
  }
}

function nextOpening(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (text[at] === '{' || text[at] === '[') return at
  return -1
}

/**
 * Returns where the object or list that begins here ends; not whole: its brackets do not match up to there, or nest too deep
 * to be read.
 */
function endOfValue(text: string, from: number): { end: number; isWhole: boolean } {
  const open: string[] = []
  let quoted = false
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (quoted) {
      if (character === '\\') at++
      else if (character === '"') quoted = false
    } else if (character === '"') quoted = true
    else if (open.length > maxJsonDepth) return { end: at, isWhole: false }
    else if (character === '{') open.push('}')
    else if (character === '[') open.push(']')
    else if (character === '}' || character === ']') {
      if (open.pop() !== character) return { end: at, isWhole: false }
      if (open.length === 0) return { end: at + 1, isWhole: true }
    }
  }
  return { end: text.length, isWhole: false }
}

function jsonIn(text: string): { value: unknown; length: number } | undefined {
  const value = boundedJsonOf(text) ?? boundedJsonOf(repaired(text))
  return value === undefined ? undefined : { value, length: text.length }
}

/** Returns the text without commas before a closing bracket, and with control characters within strings escaped. */
function repaired(text: string): string {
  const parts: string[] = []
  let from = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (!quoted) {
      if (character === '"') quoted = true
      else if (character === ',' && isClosing(text, at + 1)) {
        parts.push(text.slice(from, at))
        from = at + 1
      }
    } else if (character === '\\') at++
    else if (character === '"') quoted = false
    else if (character < ' ') {
      parts.push(text.slice(from, at), JSON.stringify(character).slice(1, -1))
      from = at + 1
    }
  }
  return parts.join('') + text.slice(from)
}

/** Whether the next character other than white space is a closing bracket. */
function isClosing(text: string, from: number): boolean {
  let at = from
  // A longer gap is none that a model writes.
  while (at < from + 1_000 && /\s/.test(text[at] ?? '')) at++
  return text[at] === '}' || text[at] === ']'
}
