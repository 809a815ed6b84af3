import { Failure } from './failure.ts'

/** The longest regular expression, in characters. */
export const maxPatternLength = 1_000

/** How many parts a pattern may have with every counted repetition written out: so large is what it is compiled to. */
const maxPatternSize = 1_000
/** What a class of Unicode counts: it is compiled to hundreds of ranges. */
const unicodeClassSize = 20

/** One match of a pattern. */
export interface PatternMatch {
  text: string
  /** Where it begins in the searched text, in UTF-16 code units. */
  index: number
  /** The texts of the named groups; null for a group that did not take part. */
  groups: Record<string, string | null>
}

/** A regular expression in RE2 syntax. */
export interface Pattern {
  /** The names of its groups, in order. */
  groups: readonly string[]
  /** How many parts it has with every counted repetition written out: a search takes time for each at each character. */
  size: number
  /** Whether any part of the text matches. Takes time linear in the length of the text. */
  test(text: string): boolean
  /**
   * Yields the matches from left to right, without overlaps. The first takes time linear in the length of the text, and
   * so may each further one.
   */
  matches(text: string): Generator<PatternMatch, void>
}

type Library = typeof import('re2js')
let library: Promise<Library> | undefined

/** Compiled patterns, because the nodes and items of a workflow use the same ones. */
const cached = new Map<string, Pattern>()
const maxCached = 64

/**
 * Returns the function that compiles regular expressions of callers, once the library for it is loaded. No text makes
 * them backtrack, so there are no back-references and no look-around. The function throws Failure `invalid_value` with a
 * sentence that says what is wrong.
 */
export async function loadPatterns(): Promise<(source: string) => Pattern> {
  library ??= import('re2js')
  const { RE2JS, RE2JSException } = await library

  function compiled(source: string): Pattern {
    try {
      const expression = RE2JS.compile(source)
      const numbers = Object.entries(expression.namedGroups()).toSorted(([, a], [, b]) => a - b)
      return {
        groups: numbers.map(([name]) => name),
        size: sizeOf(source),
        test: text => expression.test(text),
        *matches(text) {
          const matcher = expression.matcher(text)
          while (matcher.find())
            yield {
              text: matcher.group() ?? '',
              index: matcher.start(),
              groups: Object.fromEntries(numbers.map(([name, number]) => [name, matcher.group(number)])),
            }
        },
      }
    } catch (thrown) {
      if (!(thrown instanceof RE2JSException)) throw thrown
      throw invalidPattern(thrown.message.replace(/^error parsing regexp: /, '').replace(/: `(.*)`$/s, " ('$1')"))
    }
  }

  return source => {
    const fault = patternFault(source)
    if (fault !== undefined) throw invalidPattern(fault)
    const before = cached.get(source)
    if (before) return before
    const pattern = compiled(source)
    if (cached.size >= maxCached) cached.clear()
    cached.set(source, pattern)
    return pattern
  }
}

const invalidPattern = (fault: string): Failure =>
  new Failure('invalid_value', `The pattern is not a valid regular expression: ${fault}.`)

/**
 * What is wrong with a pattern as far as it is known before the library is loaded, as a part of a sentence; undefined if
 * nothing is.
 */
export function patternFault(source: string): string | undefined {
  if (source.length > maxPatternLength)
    return `it has ${source.length} characters, and at most ${maxPatternLength} are allowed`
  // What is escaped or in a class stands for itself.
  const outside = source.replaceAll(/\\[\\([]/g, '').replaceAll(/\[[^\]]*\]/g, '')
  if (/\(\?<?[=!]/.test(outside))
    return 'look-ahead and look-behind do not exist here. Match the text around it too, and name the group that you need'
  if (sizeOf(source) > maxPatternSize)
    return 'it repeats too much: with every repetition written out it has more than 1,000 parts. Write fewer or smaller ones'
  if (/\\[1-9]|\\k/.test(outside)) return 'back-references such as \\1 do not exist here. Compare the groups afterwards'
  return undefined
}

/**
 * The parts of a pattern with every counted repetition written out, or more if it cannot be told. A text that is no pattern
 * has any size: it is refused when it is compiled.
 */
export function sizeOf(source: string): number {
  /** Sizes of the groups that are open, and of the last part of each. */
  const open = [{ size: 0, last: 0 }]
  const add = (size: number): void => {
    const group = open.at(-1)!
    group.size += size
    group.last = size
  }
  const part = /\\[pP](?:\{[^}]*\}|.)|\\.|\[(?:\^?\])?(?:\\.|[^\]\\])*\]|\{(\d+)(,(\d*))?\}|[\s\S]/gu
  for (const [text, least, more, most] of source.matchAll(part)) {
    const group = open.at(-1)!
    if (text === '(') open.push({ size: 0, last: 0 })
    else if (text === ')') {
      const { size } = open.length > 1 ? open.pop()! : { size: 0 }
      add(Math.max(1, size))
    } else if (least !== undefined) {
      const times = Math.max(Number(least) + (more === ',' ? 1 : 0), Number(most ?? 0))
      group.size += group.last * Math.max(0, times - 1)
      group.last *= Math.max(1, times)
    } else if (!/^[|*+?^$]$/.test(text)) add(/\\[pP]/.test(text) ? unicodeClassSize : 1)
  }
  return open.reduce((sum, { size }) => sum + size, 0)
}
