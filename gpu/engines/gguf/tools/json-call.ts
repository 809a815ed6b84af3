import type { ToolCallEvent } from './call-parser.ts'

/**
 * Finds the end of one JSON value, character by character: 'last' for the character that ends it, 'past' for the one
 * that comes after a number or a word.
 */
export function openValue() {
  let depth = 0
  let quoted = false
  let escaped = false
  return function take(character: string): 'inside' | 'last' | 'past' {
    if (quoted) {
      if (escaped) escaped = false
      else if (character === '\\') escaped = true
      else if (character === '"') {
        quoted = false
        return depth === 0 ? 'last' : 'inside'
      }
      return 'inside'
    }
    if (character === '"') quoted = true
    else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') {
      if (depth === 0) return 'past'
      depth--
      return depth === 0 ? 'last' : 'inside'
    } else if (depth === 0 && (character === ',' || isSpace(character))) return 'past'
    return 'inside'
  }
}

export const isSpace = (character: string): boolean => /\s/.test(character)

/** The result of a character: more is needed, the object is complete, or the text is not a call. */
export type CallProgress = 'more' | 'complete' | 'broken'

/**
 * Reads one call as models write it, `{"name": "f", "arguments": {…}}`, character by character. The arguments are
 * passed on unchanged as they arrive, once the name is known. `say` receives the events.
 */
export function openJsonCall(say: (event: ToolCallEvent) => void) {
  let state: 'open' | 'key' | 'key-text' | 'colon' | 'value' | 'next' = 'open'
  let key = ''
  let text = ''
  let value = openValue()
  let name: string | undefined
  /** Arguments that were read before the name. */
  let early = ''
  let hadArguments = false

  const isArguments = () => key === 'arguments' || key === 'parameters'
  /** Arguments that are themselves a string of JSON must be complete before they can be read. */
  const asString = () => text.startsWith('"')

  function pass(piece: string) {
    hadArguments = true
    if (name === undefined) early += piece
    else say({ kind: 'arguments', text: piece })
  }

  function endValue(): CallProgress {
    state = 'next'
    if (isArguments()) {
      if (!asString()) return 'more'
      const inner = parsed(text)
      if (typeof inner !== 'string') return 'broken'
      pass(inner)
      return 'more'
    }
    if (key !== 'name') return 'more'
    const given = parsed(text)
    if (typeof given !== 'string' || name !== undefined) return 'broken'
    name = given
    say({ kind: 'call', name })
    if (early !== '') say({ kind: 'arguments', text: early })
    return 'more'
  }

  function end(): CallProgress {
    if (name === undefined) return 'broken'
    if (!hadArguments) say({ kind: 'arguments', text: '{}' })
    return 'complete'
  }

  return function take(character: string): CallProgress {
    if (state === 'value') {
      if (text === '' && isSpace(character)) return 'more'
      const how = value(character)
      if (how !== 'past') {
        text += character
        if (isArguments() && !asString()) pass(character)
        return how === 'last' ? endValue() : 'more'
      }
      if (endValue() === 'broken') return 'broken'
    }
    if (state === 'key-text') {
      text += character
      if (value(character) !== 'last') return 'more'
      const given = parsed(text)
      if (typeof given !== 'string') return 'broken'
      key = given
      state = 'colon'
      return 'more'
    }
    if (isSpace(character)) return 'more'
    if (state === 'open' && character === '{') state = 'key'
    else if (state === 'key' && character === '"') {
      state = 'key-text'
      text = character
      value = openValue()
      value(character)
    } else if (state === 'colon' && character === ':') {
      state = 'value'
      text = ''
      value = openValue()
    } else if (state === 'next' && character === ',') state = 'key'
    else if (state === 'next' && character === '}') return end()
    else return 'broken'
    return 'more'
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
