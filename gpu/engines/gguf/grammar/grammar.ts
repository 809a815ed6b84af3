import { Failure } from '../../../../core/failure.ts'
import { runSteps } from '../../../../core/time-slice.ts'
import { openBudget } from './budget.ts'
import { openCompiler } from './compile.ts'
import { gbnfOf } from './gbnf.ts'
import { openJson } from './json.ts'
import { productiveRules } from './productive.ts'
import { openRules } from './rules.ts'
import { type Origin, openDocument, sizeWithin } from './schema.ts'
import { stepsToCheck, widthOf } from './width.ts'

export { literal } from './gbnf.ts'
export type { Origin } from './schema.ts'

/** All of it in small steps, because a schema that hardly passes for small enough takes half a second. */
export interface Grammar {
  /**
   * Adds what a schema allows and gives the name of its rule, for use in `text`. Each call gives a rule that may be
   * used any number of times.
   * Throws Failure `unsupported_parameter` that names the keyword and its JSON path for what no grammar is made of,
   * `invalid_value` for what is no schema, that no value satisfies or that is too large, all with `origin.param`.
   * The grammar is of no use after that.
   */
  rule(schema: unknown, origin: Origin): Generator<void, string>
  /** The name of the rule that matches any JSON object. */
  object(): Generator<void, string>
  /**
   * The whole grammar in GBNF, for `createGrammar({ grammar })`. `root` is the right side of the rule `root`, in
   * GBNF: names that `rule` gave and texts in quotes, which `literal` writes:
   * `${literal('<tool_call>\n')} ${name} ${literal('\n</tool_call>')}`.
   */
  text(root: string): Generator<void, string>
}

/** Readings that are followed at once, and steps of llama.cpp's own check of a grammar. */
const most = { width: 200, checkSteps: 5_000_000 }

/**
 * A grammar for llama.cpp that is made of JSON Schemas and of what is written around them. Whatever it matches, once
 * read, satisfies the schema; but it does not match all that would:
 *  - Properties come in the order in which they are declared. Objects that declare any hold no others, unless
 *    `additionalProperties` says so: by JSON Schema they might, but nobody means it.
 *  - Schemas without `type` are for the type that their keywords are about; after `prefixItems` come other items only
 *    if `items` or `minItems` say so.
 *  - Numbers have at most 16 digits before and after the point, integers and what has bounds 15. Between the parts of a
 *    value stands one space or line break at most.
 *  - `format` leaves out rare values, such as the 29th of February.
 *  - `oneOf` is taken where the branches are certain to be apart, and refused elsewhere.
 */
export function openGrammar(): Grammar {
  let from: Origin = { param: 'response_format', path: 'response_format' }
  const tooLarge = (reason: string): never => {
    throw new Failure('invalid_value', `The schema at '${from.path}' is too large: ${reason}. Make it simpler.`, {
      param: from.param,
    })
  }
  const budget = openBudget(tooLarge)
  const rules = openRules(budget)
  const json = openJson(rules)
  const compile = openCompiler(rules, json, budget)
  const given = new Set<string>()
  let nextId = 0

  function* check(name: string): Generator<void, void> {
    const productive = yield* productiveRules(rules.rules, [name])
    if (!productive.has(name))
      throw new Failure('invalid_value', `No finite value satisfies the schema at '${from.path}'.`, {
        param: from.param,
      })
    if ((yield* widthOf(productive, rules.distinct, budget)) > most.width)
      throw new Failure(
        'unsupported_parameter',
        `The built-in engine cannot keep to the schema at '${from.path}': branches of its anyOf or oneOf begin alike ` +
          'and hold each other, so that too many readings of one text are possible. Let each of them begin with a ' +
          'required property of which the const is its own.',
        { param: from.param },
      )
    if (stepsToCheck(productive) > most.checkSteps) tooLarge('its rules lead to each other in too many ways')
  }

  return {
    *rule(schema, origin) {
      from = origin
      if (!sizeWithin(schema)) tooLarge('it has more than 5000 parts, 200000 characters or 100 levels')
      const { root } = openDocument(schema, origin, () => nextId++)
      try {
        const name = compile([root])
        yield* rules.settle()
        yield* check(name)
        given.add(name)
        return name
      } catch (error) {
        if (error instanceof RangeError) tooLarge('its parts refer to each other too deeply')
        throw error
      }
    },
    *object() {
      const name = json.object()
      yield* rules.settle()
      given.add(name)
      return name
    },
    *text(root) {
      const productive = yield* productiveRules(rules.rules, given)
      return `root ::= ${root}\n${yield* gbnfOf(productive)}`
    },
  }
}

/** The grammar of one schema: what `response_format: {type: 'json_schema'}` asks for. Throws as `Grammar.rule` does. */
export function schemaGrammar(schema: unknown, origin: Origin): string {
  const grammar = openGrammar()
  return runSteps(grammar.text(runSteps(grammar.rule(schema, origin))))
}

/** The grammar of any JSON object: what `response_format: {type: 'json_object'}` asks for. */
export function objectGrammar(): string {
  const grammar = openGrammar()
  return runSteps(grammar.text(runSteps(grammar.object())))
}
