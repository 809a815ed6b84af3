import { listOf } from '../../json.ts'

/** Converts log probabilities of engines to the two formats of OpenAI. Unknown members are dropped. */

interface EngineToken {
  token?: unknown
  logprob?: unknown
  bytes?: unknown
  top_logprobs?: unknown
}

export interface LikelyToken {
  token: string
  logprob: number
  bytes: number[] | null
}
export interface TokenLogprob extends LikelyToken {
  top_logprobs: LikelyToken[]
}

/** Log probability of an impossible token, because JSON has no infinity. */
const impossible = -9999

const likely = ({ token, logprob, bytes }: EngineToken): LikelyToken => {
  const text = typeof token === 'string' ? token : ''
  return {
    token: text,
    logprob: typeof logprob === 'number' ? Math.max(logprob, impossible) : impossible,
    bytes: Array.isArray(bytes) ? bytes.filter(byte => Number.isInteger(byte)) : [...Buffer.from(text)],
  }
}

const items = (value: unknown): EngineToken[] =>
  Array.isArray(value) ? value.filter(item => item !== null && typeof item === 'object') : []

const tokensOf = (value: unknown): TokenLogprob[] =>
  items(value).map(item => ({ ...likely(item), top_logprobs: items(item.top_logprobs).map(likely) }))

/** Returns the log probabilities of a chat choice; null without any. Source: OpenAI's ChatCompletionTokenLogprob. */
export function chatLogprobs(
  value: unknown,
): { content: TokenLogprob[] | null; refusal: TokenLogprob[] | null } | null {
  if (value === null || typeof value !== 'object') return null
  const { content, refusal } = value as { content?: unknown; refusal?: unknown }
  if (!Array.isArray(content) && !Array.isArray(refusal)) return null
  return {
    content: Array.isArray(content) ? tokensOf(content) : null,
    refusal: Array.isArray(refusal) ? tokensOf(refusal) : null,
  }
}

export interface CompletionLogprobs {
  tokens: string[]
  /** Null for the first token of an echoed prompt, because nothing precedes it. */
  token_logprobs: (number | null)[]
  top_logprobs: (Record<string, number> | null)[] | null
  text_offset: number[]
}

/**
 * Returns the log probabilities of a completion choice; null without any. The chat format of llama.cpp is converted.
 * `from` is where the text of this piece begins. Source: OpenAI's CreateCompletionResponse.
 */
export function completionLogprobs(value: unknown, from = 0): CompletionLogprobs | null {
  if (value === null || typeof value !== 'object') return null
  const given = value as Record<string, unknown>
  if (Array.isArray(given.content)) return ofChat(tokensOf(given.content), from)
  if (!Array.isArray(given.tokens)) return null
  const tokens = given.tokens.map(String)
  const offsets = listOf(given.text_offset)
  const logprobs = listOf(given.token_logprobs)
  const top = Array.isArray(given.top_logprobs) ? given.top_logprobs : null
  const counted = offsetsOf(tokens, from)
  return {
    tokens,
    token_logprobs: tokens.map((_, at) =>
      typeof logprobs[at] === 'number' ? Math.max(logprobs[at], impossible) : null,
    ),
    top_logprobs: top && tokens.map((_, at) => numbersIn(top[at])),
    text_offset: tokens.map((_, at) => (Number.isInteger(offsets[at]) ? (offsets[at] as number) : counted[at]!)),
  }
}

function ofChat(tokens: TokenLogprob[], from: number): CompletionLogprobs {
  const texts = tokens.map(({ token }) => token)
  return {
    tokens: texts,
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(token =>
      Object.fromEntries([token, ...token.top_logprobs].map(one => [one.token, one.logprob])),
    ),
    text_offset: offsetsOf(texts, from),
  }
}

function offsetsOf(tokens: string[], from: number): number[] {
  let at = from
  return tokens.map(token => (at += token.length) - token.length)
}

const numbersIn = (value: unknown): Record<string, number> | null =>
  value === null || typeof value !== 'object'
    ? null
    : Object.fromEntries(Object.entries(value).filter((pair): pair is [string, number] => typeof pair[1] === 'number'))
