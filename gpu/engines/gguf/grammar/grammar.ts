import { Failure } from '../../../../core/failure.ts'
import { gbnfOf } from './gbnf.ts'
import { openJson } from './json.ts'
import { openRules } from './rules.ts'

export { literal } from './gbnf.ts'

/** Where a schema stands in the request, for the sentences of refusals. */
export interface Origin {
  /** The `param` of the Failure: `response_format` or `tools`. */
  param: string
  /** JSON path of the schema: `response_format.json_schema.schema`, `tools[0].function.parameters`. */
  path: string
}

export interface Grammar {
  /**
   * Adds what a schema allows and gives the name of its rule, for use in `text`. The same schema object may be added
   * once only or several times; each call gives a rule that may be used any number of times.
   * Throws Failure `unsupported_parameter` that names the keyword and its JSON path for what no grammar is made of,
   * `invalid_value` for what is no schema, both with `origin.param`.
   */
  rule(schema: unknown, origin: Origin): string
  /** The name of the rule that matches any JSON object. */
  object(): string
  /**
   * The whole grammar in GBNF, for `createGrammar({ grammar })`. `root` is the right side of the rule `root`, in
   * GBNF: names that `rule` gave and texts in quotes, which `literal` writes:
   * `${literal('<tool_call>\n')} ${name} ${literal('\n</tool_call>')}`.
   */
  text(root: string): string
}

const mostParts = 100_000

/** A grammar for llama.cpp that is made of JSON Schemas and of what is written around them. */
export function openGrammar(): Grammar {
  let from: Origin = { param: 'response_format', path: 'response_format' }
  const rules = openRules(mostParts, reason => {
    throw new Failure('invalid_value', `The schema at '${from.path}' is too large: ${reason}. Make it simpler.`, {
      param: from.param,
    })
  })
  const json = openJson(rules)
  return {
    rule(schema, origin) {
      from = origin
      if (schema === true) return json.value()
      throw new Failure('unsupported_parameter', `The schema at '${origin.path}' cannot be kept to.`, {
        param: origin.param,
      })
    },
    object: () => json.object(),
    text: root => `root ::= ${root}\n${gbnfOf(rules.rules)}`,
  }
}

/** The grammar of one schema: what `response_format: {type: 'json_schema'}` asks for. Throws as `Grammar.rule` does. */
export function schemaGrammar(schema: unknown, origin: Origin): string {
  const grammar = openGrammar()
  return grammar.text(grammar.rule(schema, origin))
}

/** The grammar of any JSON object: what `response_format: {type: 'json_object'}` asks for. */
export function objectGrammar(): string {
  const grammar = openGrammar()
  return grammar.text(grammar.object())
}
