import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { inTimeSlices } from '../../../core/time-slice.ts'
import type { AnswerOptions } from './answer-parser.ts'
import { type Grammar, literal, openGrammar } from './grammar/grammar.ts'
import { rulesOf, untilMarker } from './tools/automaton.ts'
import { toolCallRules } from './tools/call-grammar.ts'

export interface Constrained extends AnswerOptions {
  format: ChatRequest['response_format']
}

/**
 * Builds the GBNF grammar of the whole answer, from its first token on; undefined if the answer is unconstrained. Where
 * tool calls may follow free text, the grammar covers the free text too. Runs in small steps, because many tools
 * take long. Throws Failure for schemas that cannot be converted to a grammar.
 */
export function* constraintOf({ calling, format, marks, beginning }: Constrained): Generator<void, string | undefined> {
  const grammar = openGrammar()
  const json = calling?.forced ? undefined : yield* jsonRule(format, grammar)
  const rules = calling ? yield* toolCallRules(calling, grammar) : []
  if (calling) rules.push(`answer ::= ${calling.forced ? 'calls' : json === undefined ? 'said' : `calls | ${json}`}`)
  else if (json !== undefined) rules.push(`answer ::= ${json}`)
  else return undefined
  if (marks === undefined || beginning === 'answer') return (yield* grammar.text('answer')) + rules.join('\n')
  rules.push('answer-behind ::= [ \\n]{0,4} answer')
  rules.push(...rulesOf(untilMarker(marks.close, { rule: 'answer-behind' }, false), 'thought'))
  const root = beginning === 'thinking' ? 'thought-0' : `[ \\n]{0,4} ${literal(marks.open)} thought-0 | answer`
  return (yield* grammar.text(root)) + rules.join('\n')
}

/** Maximum total characters of cached grammars and their keys. */
const maxKept = 8 << 20

/**
 * `constraintOf` with an LRU cache: clients send the same tools with every request, and a grammar takes about a
 * millisecond per tool. Other streams continue meanwhile, and concurrent requests for the same grammar share the work.
 */
export function openConstraints(most = maxKept) {
  const made = new Map<string, string>()
  const making = new Map<string, Promise<string | undefined>>()
  let kept = 0

  function keep(key: string, grammar: string): void {
    if (made.delete(key)) kept -= key.length + grammar.length
    if (key.length + grammar.length > most) return
    made.set(key, grammar)
    kept += key.length + grammar.length
    for (const [oldest, text] of made) {
      if (kept <= most) break
      made.delete(oldest)
      kept -= oldest.length + text.length
    }
  }

  return async (wanted: Constrained): Promise<string | undefined> => {
    const { calling, format, marks, beginning } = wanted
    if (!calling && (!format || format.type === 'text')) return undefined
    const key = JSON.stringify([calling, format, marks, beginning])
    let work = making.get(key) ?? made.get(key)
    if (work === undefined)
      making.set(key, (work = inTimeSlices(constraintOf(wanted)).finally(() => making.delete(key))))
    const grammar = await work
    keep(key, grammar!)
    return grammar
  }
}

function* jsonRule(format: ChatRequest['response_format'], grammar: Grammar): Generator<void, string | undefined> {
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return yield* grammar.object()
  return yield* grammar.rule(format.json_schema.schema ?? {}, {
    param: 'response_format',
    path: 'response_format.json_schema.schema',
  })
}
