import { Failure, invalid } from '../../../../core/failure.ts'
import type { Ranges } from './characters.ts'
import { openCompiler } from './compile.ts'
import { openJson } from './json.ts'
import { productiveRules } from './productive.ts'
import { type GrammarPart, openBudget, openRules, type RuleMap } from './rules.ts'
import { type Origin, SchemaDocument, SchemaFailure, sizeWithin } from './schema.ts'
import { ruleWidth, stepsToCheck } from './width.ts'

/** Maximum parallel readings of a text, and maximum steps of llama.cpp's own check of a grammar. */
const most = { width: 200, checkSteps: 5_000_000 }

/** Maximum conversions of a schema that only describes; each without one more keyword. */
const maxAttempts = 40

/**
 * A grammar for llama.cpp that is built from JSON Schemas and the text around them. All text that it matches satisfies
 * the schema once parsed, but it does not match all text that would:
 *  - Properties are in the order in which they are declared. Objects with declared properties have no others, unless
 *    `additionalProperties` allows them: JSON Schema allows others by default, but authors rarely intend that.
 *  - Schemas without `type` apply to the type that their keywords are about. After `prefixItems` other items follow
 *    only if `items` or `minItems` say so.
 *  - Numbers have at most 16 digits before and after the point; integers and bounded numbers have at most 15. Between
 *    the parts of a value there is at most one space or line break.
 *  - `format` leaves out rare values, such as the 29th of February.
 *  - `oneOf` is supported if its branches are certainly disjoint, and refused otherwise.
 * It is built in small steps, because a schema just below the size limit takes half a second.
 */
export function openGrammar() {
  let from: Origin = { param: 'response_format', path: 'response_format' }
  const tooLarge = (reason: string): never => {
    throw invalid(from.param, `The schema at '${from.path}' is too large: ${reason}. Make it simpler.`)
  }
  const budget = openBudget(tooLarge)
  const rules = openRules(budget)
  const json = openJson(rules)
  let compile = openCompiler(rules, json, budget)
  const given = new Set<string>()
  let nextId = 0

  function* check(name: string): Generator<void, void> {
    const productive = yield* productiveRules(rules.rules, [name])
    if (!productive.has(name)) throw invalid(from.param, `No finite value satisfies the schema at '${from.path}'.`)
    if ((yield* ruleWidth(productive, rules.distinct, budget)) > most.width)
      throw invalid(
        from.param,
        `The built-in engine cannot keep to the schema at '${from.path}': branches of its anyOf or oneOf begin alike ` +
          'and hold each other, so that too many readings of one text are possible. Let each of them begin with a ' +
          'required property of which the const is its own.',
        'unsupported_parameter',
      )
    if (stepsToCheck(productive) > most.checkSteps) tooLarge('its rules lead to each other in too many ways')
  }

  function* converted(schema: unknown, origin: Origin, leftOut?: Set<string>): Generator<void, string> {
    from = origin
    if (!sizeWithin(schema)) tooLarge('it has more than 5000 parts, 200000 characters or 100 levels')
    const { root } = new SchemaDocument(schema, origin, () => nextId++, leftOut)
    try {
      const { rule: name } = compile([root])
      yield* rules.settle()
      yield* check(name)
      given.add(name)
      return name
    } catch (error) {
      if (error instanceof RangeError) tooLarge('its parts refer to each other too deeply')
      throw error
    }
  }

  function* object(): Generator<void, string> {
    const { rule: name } = json.object()
    yield* rules.settle()
    given.add(name)
    return name
  }

  return {
    /**
     * Adds a rule for the values that a schema allows and returns its name, for use in `text`. The rule may be used any
     * number of times.
     * Throws Failure `unsupported_parameter`, which names the keyword and its JSON path, for keywords that cannot be
     * converted, and `invalid_value` for schemas that are invalid, unsatisfiable or too large, all with `origin.param`.
     * The grammar cannot be used after that.
     */
    rule: (schema: unknown, origin: Origin): Generator<void, string> => converted(schema, origin),
    /**
     * Adds a rule for the objects that a schema describes, and returns its name with the paths of what it leaves out:
     * what the grammar cannot keep, or what is wrong in the schema. At worst that is the whole schema, and the rule
     * matches any JSON object. Never throws a Failure.
     */
    *looseRule(schema: unknown, origin: Origin): Generator<void, { rule: string; leftOut: string[] }> {
      const leftOut = new Set<string>()
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const restore = rules.checkpoint()
        try {
          return { rule: yield* converted(schema, origin, leftOut), leftOut: [...leftOut] }
        } catch (error) {
          restore()
          compile = openCompiler(rules, json, budget)
          if (!(error instanceof Failure)) throw error
          if (!(error instanceof SchemaFailure) || error.path === origin.path || leftOut.has(error.path)) break
          leftOut.add(error.path)
        }
      }
      return { rule: yield* object(), leftOut: [origin.path] }
    },
    /** Returns the name of the rule that matches any JSON object. */
    object,
    /**
     * Returns the whole grammar in GBNF, for `createGrammar({ grammar })`. `root` is the right side of the rule `root`,
     * in GBNF: names that `rule` returned, and quoted texts, which `literal` writes:
     * `${literal('<tool_call>\n')} ${name} ${literal('\n</tool_call>')}`.
     */
    *text(root: string): Generator<void, string> {
      const productive = yield* productiveRules(rules.rules, given)
      return `root ::= ${root}\n${yield* gbnfOf(productive)}`
    },
  }
}

export type Grammar = ReturnType<typeof openGrammar>

/**
 * Writes rules in the syntax of llama.cpp, one per line and one per step.
 * Source: grammars/README.md and src/llama-grammar.cpp of llama.cpp.
 */
function* gbnfOf(rules: RuleMap): Generator<void, string> {
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
  if (typeof part === 'string') return literal(part)
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
export const written = (characters: string): string => characters.replace(/[^a-zA-Z0-9 :,.{}_/<>|=@#+*]/gu, escaped)

function escaped(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '"') return '\\"'
  const code = character.codePointAt(0)!
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
}
