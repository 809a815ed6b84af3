import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { inTimeSlices } from '../../../core/time-slice.ts'
import type { AnswerOptions } from './answer-parser.ts'
import { type Grammar, literal, openGrammar } from './grammar/grammar.ts'
import { rulesOf, untilMarker } from './tools/automaton.ts'
import { toolCallRules } from './tools/call-grammar.ts'

export interface Constrained extends AnswerOptions {
  format: ChatRequest['response_format']
}

export interface Constraint {
  /** The GBNF grammar of the whole answer, from its first token on. */
  grammar: string
  /** What it leaves out of the schemas of tools, as paths in the request. */
  leftOut: readonly string[]
}

/**
 * Builds the constraint of an answer; undefined if it has none. Where tool calls may follow free text, the grammar covers
 * the free text too. Runs in small steps, because many tools take long. Throws Failure for the schema of an answer or of
 * a tool with `strict` that cannot be converted to a grammar.
 */
export function* constraintOf(wanted: Constrained): Generator<void, Constraint | undefined> {
  const leftOut: string[] = []
  const grammar = yield* grammarOf(wanted, leftOut)
  return grammar === undefined ? undefined : { grammar, leftOut }
}

function* grammarOf(
  { calling, format, marks, beginning }: Constrained,
  leftOut: string[],
): Generator<void, string | undefined> {
  const grammar = openGrammar()
  const json = calling?.forced ? undefined : yield* jsonRule(format, grammar)
  const rules = calling ? yield* toolCallRules(calling, grammar, leftOut) : []
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
  const made = new Map<string, Constraint>()
  const making = new Map<string, Promise<Constraint | undefined>>()
  let kept = 0

  const sizeOf = (key: string, { grammar, leftOut }: Constraint): number =>
    leftOut.reduce((sum, path) => sum + path.length, key.length + grammar.length)

  function keep(key: string, constraint: Constraint): void {
    const size = sizeOf(key, constraint)
    if (made.delete(key)) kept -= size
    if (size > most) return
    made.set(key, constraint)
    kept += size
    for (const [oldest, other] of made) {
      if (kept <= most) break
      made.delete(oldest)
      kept -= sizeOf(oldest, other)
    }
  }

  return async (wanted: Constrained): Promise<Constraint | undefined> => {
    const { calling, format, marks, beginning } = wanted
    if (!calling && (!format || format.type === 'text')) return undefined
    const key = JSON.stringify([calling, format, marks, beginning])
    let work = making.get(key) ?? made.get(key)
    if (work === undefined)
      making.set(key, (work = inTimeSlices(constraintOf(wanted)).finally(() => making.delete(key))))
    const constraint = await work
    keep(key, constraint!)
    return constraint
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
