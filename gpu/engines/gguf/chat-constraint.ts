import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { type Grammar, literal, openGrammar } from './grammar/grammar.ts'
import type { Beginning, ThinkMarks } from './reasoning.ts'
import { rulesOf, untilMarker } from './tools/automaton.ts'
import { callRules } from './tools/call-grammar.ts'
import type { Calling } from './tools/calling.ts'

export interface Constrained {
  calling: Calling | undefined
  format: ChatRequest['response_format']
  marks: ThinkMarks | undefined
  beginning: Beginning
}

/**
 * What the whole answer must keep to, in GBNF, from its first token on; undefined when it may be anything. Free text
 * is a part of it wherever calls may come behind some, because a single token that the grammar allows costs nothing.
 * Throws Failure for schemas that no grammar can be made of.
 */
export function constraintOf({ calling, format, marks, beginning }: Constrained): string | undefined {
  const grammar = openGrammar()
  const json = calling?.forced ? undefined : jsonRule(format, grammar)
  const rules = calling ? callRules(calling, grammar) : []
  if (calling) rules.push(`answer ::= ${calling.forced ? 'calls' : json === undefined ? 'said' : `calls | ${json}`}`)
  else if (json !== undefined) rules.push(`answer ::= ${json}`)
  else return undefined
  if (marks === undefined || beginning === 'answer') return grammar.text('answer') + rules.join('\n')
  rules.push('answer-behind ::= [ \\n]{0,4} answer')
  rules.push(...rulesOf(untilMarker(marks.close, { rule: 'answer-behind' }, false), 'thought'))
  const root = beginning === 'thinking' ? 'thought-0' : `[ \\n]{0,4} ${literal(marks.open)} thought-0 | answer`
  return grammar.text(root) + rules.join('\n')
}

/** Characters of grammars and of what they were made of, all together. */
const mostKept = 8 << 20

/**
 * `constraintOf`, which keeps what it has made, last used last: clients send the same tools with every turn, and a
 * grammar takes some milliseconds for each (thirty tools took 0.26 s, measured), in which nobody gets a token.
 */
export function openConstraints(most = mostKept): typeof constraintOf {
  const made = new Map<string, string>()
  let kept = 0
  return wanted => {
    const { calling, format, marks, beginning } = wanted
    if (!calling && (!format || format.type === 'text')) return undefined
    const key = JSON.stringify([calling, format, marks, beginning])
    const grammar = made.get(key) ?? constraintOf(wanted)!
    if (made.delete(key)) made.set(key, grammar)
    else if (key.length + grammar.length <= most) {
      made.set(key, grammar)
      kept += key.length + grammar.length
      for (const [oldest, text] of made) {
        if (kept <= most) break
        made.delete(oldest)
        kept -= oldest.length + text.length
      }
    }
    return grammar
  }
}

function jsonRule(format: ChatRequest['response_format'], grammar: Grammar): string | undefined {
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return grammar.object()
  return grammar.rule(format.json_schema.schema ?? {}, {
    param: 'response_format',
    path: 'response_format.json_schema.schema',
  })
}
