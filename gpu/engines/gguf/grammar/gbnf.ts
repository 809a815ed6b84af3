import type { GrammarPart, Ranges, RuleMap } from './rules.ts'

/**
 * Writes rules in the syntax of llama.cpp, one per line and one per step.
 * Source: grammars/README.md and src/llama-grammar.cpp of llama.cpp.
 */
export function* gbnfOf(rules: RuleMap): Generator<void, string> {
  const lines: string[] = []
  for (const [name, alternatives] of rules) {
    const sides = alternatives.map(sequence => (sequence.length === 0 ? '""' : sequence.map(partOf).join(' ')))
    lines.push(`${name} ::= ${sides.join(' | ')}\n`)
    yield
  }
  return lines.join('')
}

/** Returns literal text as a part of a grammar: `"a\n"`. */
export const literal = (characters: string): string => `"${written(characters)}"`

function partOf(part: GrammarPart): string {
  if (part.kind === 'text') return literal(part.text)
  if (part.kind === 'set') return setOf(part.set)
  if (part.kind === 'rule') return part.rule
  const of = partOf(part.of)
  // The operator repeats the item before it: a quoted text is one item.
  if (part.max === Number.POSITIVE_INFINITY)
    return part.min === 0 ? `${of}*` : part.min === 1 ? `${of}+` : `${of}{${part.min},}`
  return part.min === 0 && part.max === 1 ? `${of}?` : `${of}{${part.min},${part.max}}`
}

function setOf(ranges: Ranges): string {
  const character = (code: number) => written(String.fromCodePoint(code))
  return `[${ranges.map(([low, high]) => (low === high ? character(low) : `${character(low)}-${character(high)}`)).join('')}]`
}

/** Writes characters by number, except letters, digits and safe signs, because other signs may have a meaning. */
const written = (characters: string): string => characters.replace(/[^a-zA-Z0-9 :,.{}_/<>|=@#+*]/gu, escaped)

function escaped(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '"') return '\\"'
  const code = character.codePointAt(0)!
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
}
