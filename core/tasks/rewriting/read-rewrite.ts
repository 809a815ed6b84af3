import { Failure } from '../../failure.ts'
import { isObject, jsonOf } from '../../json.ts'

/**
 * Returns the prompts in the answer of a chat model to a `rewriteRequest`: 1 to `count`, none of them empty or longer
 * than `maxLength` characters. The answer may be the requested JSON, JSON in a text, or lines. Throws Failure
 * `worker_error` for an answer without a prompt.
 */
export function readRewrite(
  answer: string | null,
  { modelId, count, maxLength }: { modelId: string; count: number; maxLength: number },
): string[] {
  const text = withoutReasoning(answer ?? '')
  const prompts = (promptsOfJson(text, maxLength) ?? promptsOfLines(text, count))
    .map(prompt => shortened(plain(prompt), maxLength))
    .filter(prompt => prompt !== '')
  const different = [...new Set(prompts)].slice(0, count)
  if (different.length > 0) return different
  throw new Failure(
    'worker_error',
    `The model '${modelId}' did not answer with a prompt. Try again, or let another chat model rewrite prompts.`,
  )
}

/** Some models write their reasoning into the answer. Without its end there is no answer. */
function withoutReasoning(answer: string): string {
  const end = answer.lastIndexOf('</think>')
  if (end >= 0) return answer.slice(end + '</think>'.length).trim()
  return /^\s*<think>/.test(answer) ? '' : answer.trim()
}

/** Returns the prompts of an answer in JSON; undefined if it is another text. */
function promptsOfJson(text: string, maxLength: number): string[] | undefined {
  const fenced = /```(?:json)?\s*([\s\S]*?)```/.exec(text)?.[1] ?? text
  if (!/^\s*(\{|\[\s*["{])|"(prompts?|rewritten_prompt)"\s*:/.test(fenced)) return undefined
  const begin = fenced.search(/[[{]/)
  const end = Math.max(fenced.lastIndexOf('}'), fenced.lastIndexOf(']'))
  const value = jsonOf(fenced.slice(begin, end + 1))
  return value === undefined ? promptsBeforeCut(fenced.slice(begin), maxLength) : textsIn(value)
}

/**
 * Returns the prompts of JSON that ends within a text, as of a model that wrote until its last token. The last one
 * counts only if it is longer than `maxLength`: then it is cut in any case.
 */
function promptsBeforeCut(json: string, maxLength: number): string[] {
  const whole = json.replace(/\\(?:u[\da-f]{0,3})?$/i, '')
  const prompts = textsIn(jsonOf(`${whole}"]}`) ?? jsonOf(`${whole}"}`))
  return prompts.filter((prompt, at) => at < prompts.length - 1 || prompt.length > maxLength)
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  if (!isObject(value)) return []
  const { prompts, prompt, rewritten_prompt } = value
  return textsIn(prompts ?? prompt ?? rewritten_prompt)
}

function promptsOfLines(text: string, count: number): string[] {
  const lines = text
    .replaceAll('```', '')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  // Such as "Here is the prompt:".
  if (lines.length > 1 && lines[0]!.endsWith(':')) lines.shift()
  return count === 1 ? [lines.join(' ')] : lines.map(line => line.replace(/^(?:[-*•]|\d{1,2}[.)])\s+/, ''))
}

const quotes: readonly (readonly [string, string])[] = [
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['“', '”'],
  ['„', '“'],
  ['«', '»'],
  ['**', '**'],
]

/** Removes labels, quotes around the whole text, line breaks and control characters. */
function plain(prompt: string): string {
  let text = prompt
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .replace(/^(?:rewritten |new )?prompt(?: \d+)?:\s*/i, '')
  for (const [open, close] of quotes)
    if (text.length > open.length + close.length && text.startsWith(open) && text.endsWith(close))
      text = text.slice(open.length, -close.length).trim()
  return /[\p{L}\p{N}]/u.test(text) ? text : ''
}

/** Cuts a text that is too long after its last whole sentence, or else after its last whole word. */
function shortened(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const cut = text.slice(0, maxLength + 1)
  const sentence = cut.search(/[.!?。！？](?!.*[.!?。！？]\s)\s/u)
  if (sentence >= maxLength / 2) return cut.slice(0, sentence + 1)
  const word = cut.lastIndexOf(' ')
  // Not within a character of two code units.
  return (word > 0 ? cut.slice(0, word) : cut.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, '')).trim()
}
