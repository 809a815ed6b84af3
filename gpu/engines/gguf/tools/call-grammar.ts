import { invalid } from '../../../../core/failure.ts'
import { type Grammar, literal } from '../grammar/grammar.ts'
import { rulesOf, untilMarker } from './automaton.ts'
import type { RequestTool, ToolCalling } from './call-form.ts'
import { openingOf } from './call-parser.ts'

/** The API allows no more calls in one answer, and clients fail at more. */
const maxCalls = 128

/** Models write at most a line break and some spaces here. Without a limit a bad model could write only white space. */
const gap = '[ \\n]{0,4}'

/** The schema of a function without parameters: it has no arguments. */
const noParameters = { type: 'object', properties: {}, additionalProperties: false }

/**
 * Returns rules for calls with valid arguments, to be appended to the grammar, which has the rules of their schemas.
 * The rule `calls` is one call, or several if allowed, after the marker if the family has one. Unless the answer must
 * be a call, the rule `said` is free text that may contain such calls. Runs in steps, several for each tool.
 * Throws Failure as `Grammar.rule` does for a tool with `strict`, with the tool's `parameters` as its param. Of other
 * tools what the grammar cannot keep is added to `leftOut`, as paths.
 */
export function* toolCallRules(calling: ToolCalling, grammar: Grammar, leftOut: string[]): Generator<void, string[]> {
  const { form, tools, parallel } = calling
  const { marker, close, separator } = form
  const rules: string[] = []
  for (const { tool, at } of tools) {
    const parameters = yield* argumentsRule(tool, at, grammar, leftOut)
    rules.push(
      form.family === 'mistral-named'
        ? `${literal(tool.function.name)} ("[CALL_ID]" [a-zA-Z0-9]{9})? "[ARGS]" ${parameters}`
        : jsonCall(tool.function.name, form.argumentsKey, parameters),
    )
  }
  const lines = [`call ::= ${rules.join(' | ')}`]
  const more = (rest: string) => (parallel ? ` (${rest}){0,${maxCalls - 1}}` : '')
  const mark = literal(marker)
  switch (form.family) {
    case 'hermes': {
      const one = `${gap} call ${gap} ${literal(close!)}`
      lines.push(`calls-behind ::= ${one}${more(`${gap} ${mark} ${one}`)}`, `calls ::= ${mark} calls-behind`)
      break
    }
    case 'mistral':
      lines.push(
        `calls-behind ::= ${gap} "[" ${gap} call${more(`${gap} "," ${gap} call`)} ${gap} "]"`,
        `calls ::= ${mark} calls-behind`,
      )
      break
    case 'mistral-named':
      lines.push(`calls-behind ::= call${more(`${mark} call`)}`, `calls ::= ${mark} calls-behind`)
      break
    case 'llama':
      lines.push(
        `calls-behind ::= ${gap} call${more(`${gap} ${literal(separator)} ${gap} call`)}`,
        `calls ::= ${mark}? calls-behind`,
      )
  }
  if (calling.forced) return lines
  const names = tools.map(({ tool }) => tool.function.name)
  const content = form.bare
    ? openingOf(form, names, 'calls-behind').automaton
    : untilMarker(marker, { rule: 'calls-behind' }, true)
  return [...lines, `said ::= ${form.bare ? 'calls | ' : ''}said-0`, ...rulesOf(content, 'said')]
}

function jsonCall(name: string, key: string, parameters: string): string {
  const colon = `${gap} ":" ${gap}`
  const comma = `${gap} "," ${gap}`
  const type = `(${literal('"type"')} ${colon} ${literal('"function"')} ${comma})?`
  return [
    `"{" ${gap} ${key === 'parameters' ? type : ''} ${literal('"name"')} ${colon} ${literal(JSON.stringify(name))}`,
    `${comma} ${literal(JSON.stringify(key))} ${colon} ${parameters} ${gap} "}"`,
  ].join(' ')
}

function* argumentsRule(
  { function: { parameters, strict } }: RequestTool,
  at: number,
  grammar: Grammar,
  leftOut: string[],
): Generator<void, string> {
  const path = `tools[${at}].function.parameters`
  const given = parameters ?? noParameters
  const { type } = given
  if (type != null && type !== 'object') {
    if (strict)
      throw invalid(`${path}.type`, `'${path}.type' must be "object": the arguments of a function have names.`)
    leftOut.push(path)
    return yield* grammar.object()
  }
  const names = Object.keys(given).some(key => ['$ref', 'anyOf', 'oneOf', 'allOf', 'const', 'enum'].includes(key))
  const schema = type == null && !names ? { ...given, type: 'object' } : given
  if (strict) return yield* grammar.rule(schema, { param: path, path })
  const loose = yield* grammar.looseRule(schema, { param: path, path })
  leftOut.push(...loose.leftOut)
  return loose.rule
}
