import { characters, complement, everything, type Ranges, union } from './characters.ts'

/** A regular expression as a tree. `max` may be Infinity. */
export type Pattern =
  | { kind: 'one'; of: Ranges }
  | { kind: 'all'; parts: readonly Pattern[] }
  | { kind: 'any'; parts: readonly Pattern[] }
  | { kind: 'repeat'; of: Pattern; min: number; max: number }

/** The reason why a pattern is not simple enough. */
export class NotSimple extends Error {}

const lineEnds = characters('\n', '\r', '\u2028\u2029')
const spaces = characters(
  '\t\r',
  ' ',
  '\u00a0',
  '\u1680',
  '\u2000\u200a',
  '\u2028\u2029',
  '\u202f',
  '\u205f',
  '\u3000',
  '\ufeff',
)
const classes: Record<string, Ranges> = {
  d: characters('09'),
  w: characters('09', 'AZ', '__', 'az'),
  s: spaces,
  D: complement(characters('09')),
  W: complement(characters('09', 'AZ', '__', 'az')),
  S: complement(spaces),
}
const signs: Record<string, string> = { t: '\t', n: '\n', r: '\r', v: '\v', f: '\f', '0': '\0' }
const anything: Pattern = { kind: 'repeat', of: { kind: 'one', of: everything }, min: 0, max: Number.POSITIVE_INFINITY }
const longest = 1000
const maxNested = 50

/**
 * Reads an ECMAScript regular expression with the flag `u`: literals, classes, groups, alternatives, repetitions, and
 * `^` and `$` at the ends of the whole or of its alternatives. Where they are missing, any text may be there.
 * Throws NotSimple for everything else, and SyntaxError for invalid regular expressions.
 */
export function parsePattern(source: string): Pattern {
  if (source.length > longest) throw new NotSimple(`it is longer than ${longest} characters`)
  RegExp(source, 'u')
  const input = Array.from(source)
  let at = 0
  let nested = 0
  const peek = (text: string) => input.slice(at, at + text.length).join('') === text
  const take = (text: string) => peek(text) && ((at += text.length), true)

  const alternatives = (outermost: boolean): Pattern => {
    const parts = [sequence(outermost)]
    while (take('|')) parts.push(sequence(outermost))
    return parts.length === 1 ? parts[0]! : { kind: 'any', parts }
  }
  const sequence = (outermost: boolean): Pattern => {
    const parts: Pattern[] = []
    const start = at
    let [begun, ended] = [!outermost, !outermost]
    while (at < input.length && !peek('|') && !peek(')')) {
      if (outermost && at === start && take('^')) begun = true
      else if (outermost && peek('$') && (at + 1 === input.length || input[at + 1] === '|')) ended = take('$')
      else parts.push(repeated(atom()))
    }
    return { kind: 'all', parts: [...(begun ? [] : [anything]), ...parts, ...(ended ? [] : [anything])] }
  }
  const repeated = (of: Pattern): Pattern => {
    const times = /^\{(\d+)(,?)(\d*)\}/.exec(input.slice(at, at + 24).join(''))
    let [min, max] = [1, 1]
    if (take('*')) [min, max] = [0, Number.POSITIVE_INFINITY]
    else if (take('+')) max = Number.POSITIVE_INFINITY
    else if (take('?')) min = 0
    else if (times) {
      at += times[0].length
      min = Number(times[1])
      max = times[3] ? Number(times[3]) : times[2] ? Number.POSITIVE_INFINITY : min
    } else return of
    // Lazy and greedy repetitions match the same texts.
    take('?')
    return { kind: 'repeat', of, min, max }
  }
  const atom = (): Pattern => {
    if (take('(')) {
      if (peek('?') && !take('?:')) {
        const name = /^\?<\w+>/.exec(input.slice(at, at + 100).join(''))?.[0]
        if (!name) throw new NotSimple('it has a group of a special kind')
        at += name.length
      }
      if (++nested > maxNested) throw new NotSimple(`its groups are nested more than ${maxNested} deep`)
      const group = alternatives(false)
      nested--
      at++
      return group
    }
    if (take('[')) return { kind: 'one', of: bracket() }
    if (take('.')) return { kind: 'one', of: complement(lineEnds) }
    if (peek('^') || peek('$')) throw new NotSimple(`'${input[at]}' stands elsewhere than at its ends`)
    return { kind: 'one', of: character() }
  }
  /** Reads an escape after a backslash, or a literal character. */
  const character = (): Ranges => {
    const sign = input[at++]!
    if (sign !== '\\') return characters(sign)
    const escaped = input[at++]!
    if (Object.hasOwn(classes, escaped)) return classes[escaped]!
    if (Object.hasOwn(signs, escaped)) return characters(signs[escaped]!)
    const hex = (digits: number) => {
      const code = Number.parseInt(input.slice(at, at + digits).join(''), 16)
      at += digits
      return code
    }
    if (escaped === 'x') return single(hex(2))
    if (escaped === 'u' && take('{')) {
      const code = hex(input.indexOf('}', at) - at)
      at++
      return single(code)
    }
    if (escaped === 'u') {
      const code = hex(4)
      if (code < 0xd800 || code > 0xdbff || !peek('\\u')) return single(code)
      at += 2
      return single(0x10000 + (code - 0xd800) * 0x400 + (hex(4) - 0xdc00))
    }
    if (/[a-zA-Z0-9]/.test(escaped)) throw new NotSimple(`it uses '\\${escaped}'`)
    return characters(escaped)
  }
  const bracket = (): Ranges => {
    const negated = take('^')
    const parts: [number, number][] = []
    while (!take(']')) {
      const first = peek('\\b') ? ((at += 2), characters('\b')) : character()
      if (first.length === 1 && peek('-') && input[at + 1] !== ']') {
        at++
        parts.push([first[0]![0], character()[0]![0]])
      } else parts.push(...first.map(([low, high]) => [low, high] as [number, number]))
    }
    const of = union(parts)
    return negated ? complement(of) : of
  }
  return alternatives(true)
}

const single = (code: number): Ranges => {
  if (code >= 0xd800 && code <= 0xdfff) throw new NotSimple('it asks for half of a surrogate pair')
  return [[code, code]]
}
