import { Failure, invalid } from '../../failure.ts'
import { loadPatterns, type Pattern, type PatternMatch } from '../../pattern.ts'
import { parsed } from '../../schemas/issues.ts'
import { schemaFaults } from '../../schemas/json-schema.ts'
import { ExtractRequest, ExtractResult } from '../../schemas/steps.ts'
import type { StepTaskRecord } from '../task.ts'
import { type FoundJson, findJson } from './find-json.ts'
import { maxCharacters, tooLarge } from './size.ts'
import { stepTask } from './step-task.ts'

/** Matches of one pattern in a text. */
const maxMatches = 10_000

/** Takes JSON, or the matches of a pattern, out of a text. Throws Failure `invalid_value` that says what is wrong there. */
async function extract({ text, schema, pattern, all = false }: ExtractRequest): Promise<ExtractResult> {
  const compile = await loadPatterns()
  return { value: pattern === undefined ? jsonOfSchema(text, schema, compile) : matched(text, compile(pattern), all) }
}

/** The first JSON in the text that fits the schema; without a schema the whole text, the first block or the longest one. */
function jsonOfSchema(text: string, schema: unknown, compile: (pattern: string) => Pattern): unknown {
  let best: FoundJson | undefined
  let bestFaults: string[] = []
  for (const found of findJson(text)) {
    const faults = schema === undefined ? [] : schemaFaults(schema, found.value, compile)
    if (faults.length === 0 && (schema !== undefined || found.from !== 'prose')) return found.value
    // What stands in a block of code was meant as the answer.
    if (best && (best.from === 'block' || best.length >= found.length)) continue
    best = found
    bestFaults = faults
  }
  if (!best) throw nothing('There is no JSON in the text', text)
  if (bestFaults.length === 0) return best.value
  throw invalid('text', `The JSON in the text does not fit the schema: ${bestFaults.join('; ')}.`)
}

function matched(text: string, pattern: Pattern, all: boolean): unknown {
  const valueOf = (match: PatternMatch) => (pattern.groups.length > 0 ? match.groups : match.text)
  const values: unknown[] = []
  let characters = 0
  for (const match of pattern.matches(text)) {
    // Groups within groups repeat the text.
    for (const group of Object.values(match.groups)) characters += group?.length ?? 0
    if (characters > maxCharacters) throw tooLarge(`groups with more than ${maxCharacters >> 20} MiB of text`)
    if (!all) return valueOf(match)
    if (values.length === maxMatches)
      throw invalid('pattern', `The pattern matches more than ${maxMatches} times. Make it more specific.`)
    values.push(valueOf(match))
  }
  if (!all) throw nothing('The pattern matches nothing in the text', text)
  return values
}

const nothing = (what: string, text: string): Failure =>
  invalid('text', `${what}, which ${text === '' ? 'is empty' : `begins with ${JSON.stringify(text.slice(0, 80))}`}.`)

/** The record of taking values out of a text. */
export const extractTask: StepTaskRecord = {
  ...stepTask,
  id: 'text/extract',
  title: 'extraction from text',
  description: 'Take JSON or the matches of a pattern out of a text, such as the answer of a model. Needs no model.',
  sample: { text: 'The answer is {"name": "Ada"}.' },
  request: ExtractRequest,
  result: ExtractResult,
  fill: inputs => parsed(ExtractRequest, inputs),
  work: extract,
}
