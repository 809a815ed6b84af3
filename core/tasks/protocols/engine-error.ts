import { Failure, type FailureCode, failures } from '../../failure.ts'
import { jsonOf, objectOf } from '../../json.ts'
import { faultClass, oneLine, withoutLocations } from './engine-text.ts'

/** The error message of an engine, parsed. */
export interface EngineError {
  message: string
  type: string
  /** A code, or an HTTP status as a number (llama.cpp, vLLM). */
  code: string | number | null
  /** The field with the error. */
  param: string | null
  /** Tokens of the request, and context length of the model, if the message names them. */
  tokens: number | null
  context: number | null
}

const text = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
const count = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null

/**
 * Parses the error formats of engines: `{error: {…}}` (OpenAI, llama.cpp, vLLM), `{object: "error", …}` (vLLM until 0.9,
 * SGLang), `{error: "…"}` (TEI, Ollama, sd-server), `{detail}` (FastAPI; a list for wrong fields), `{message}`, and plain
 * text.
 */
export function engineErrorOf(value: unknown): EngineError {
  const outer = objectOf(value)
  const inner = outer.error ?? value
  const errorFields = objectOf(inner)
  const message =
    typeof inner === 'string' ? inner : text(errorFields.message ?? detailOf(errorFields.detail) ?? errorFields.msg)
  const { code, param } = errorFields
  return {
    message,
    type: text(errorFields.type ?? outer.error_type),
    code: typeof code === 'string' || typeof code === 'number' ? code : null,
    param: typeof param === 'string' && /^[\w.[\]]{1,100}$/.test(param) ? param : null,
    tokens: count(errorFields.n_prompt_tokens) ?? firstCount(message, tokenCountPatterns),
    context: count(errorFields.n_ctx) ?? firstCount(message, contextSizePatterns),
  }
}

/** The same for a body that may not be JSON. */
export function engineErrorIn(body: string): EngineError {
  const value = jsonOf(body)
  if (value !== undefined) return engineErrorOf(value)
  const isMarkup = /^\s*</.test(body)
  return engineErrorOf(isMarkup ? body.replaceAll(/<(style|script|head)\b[^]*?<\/\1>|<[^>]*>/gi, ' ').trim() : body)
}

/** FastAPI lists every wrong field as `{loc, msg}`; Kokoro-FastAPI sends an object with a `message`. */
function detailOf(detail: unknown): string | undefined {
  if (!Array.isArray(detail)) {
    const message = (detail as { message?: unknown } | null | undefined)?.message ?? detail
    return message === undefined || message === null ? undefined : text(message)
  }
  return (detail as { loc?: unknown[]; msg?: unknown }[])
    .slice(0, 5)
    .map(one => {
      const place = Array.isArray(one?.loc) ? one.loc.filter(part => part !== 'body').join('.') : ''
      return `${place ? `${place}: ` : ''}${text(one?.msg ?? one)}`
    })
    .join('; ')
}

/** Patterns of the two numbers in messages of vLLM, llama.cpp, SGLang, TEI, OpenAI and our engine, specific ones first. */
const tokenCountPatterns = [
  /\b(\d+) (?:tokens )?(?:in|from) the (?:input )?(?:messages|prompt)/i,
  /(?:request|input|prompt) \((?:length )?(\d+)/i,
  /input length \(?(\d+)/i,
  /(?:passed|contains at least|resulted in|has|have) (\d+) (?:input )?tokens/i,
  /too long: (\d+) tokens/i,
  /requested (?:a total of )?(\d+) tokens/i,
  /given: (\d+)/i,
]
const contextSizePatterns = [
  /context (?:length|size|window)(?: of this model)?(?: is only| is| of)?:? \(?(\d+)/i,
  /\bcontext of (\d+)/i,
  /model length (?:of|is) (\d+)/i,
  /less than (\d+) tokens/i,
  /batch size: (\d+)/i,
  /tokens > (\d+)/i,
]

function firstCount(message: string, places: readonly RegExp[]): number | null {
  for (const place of places) {
    const found = place.exec(message)
    if (found) return Number(found[1])
  }
  return null
}

/** Messages about a prompt that is too long, of vLLM, llama.cpp, SGLang, TEI and hosted services. */
const tooLong =
  /maximum context length|context (length|size|window)|exceed_context_size|context_length_exceeded|longer than the (model's )?(maximum|context)|(input|prompt) is too (large|long)|too many tokens|increase the physical batch size|must have less than \d+ (tokens|characters)/i
const loading = /\b(loading|warming up|starting|initializ\w+)\b|not (yet )?(ready|loaded)/i
const overloaded = /overload|too many requests|queue|capacity|busy/i
const quotaExceeded = /insufficient_quota|billing|credit|exceeded your current quota/i

/** Returns the code of an engine if it is one of our codes with status 400. */
const callerCode = (code: string | number | null): FailureCode | undefined =>
  typeof code === 'string' && Object.hasOwn(failures, code) && failures[code as FailureCode].status === 400
    ? (code as FailureCode)
    : undefined

/** Returns our code for the status and error message of an engine. */
function codeOf(status: number, words: EngineError): FailureCode {
  const text = `${words.code ?? ''} ${words.type} ${words.message}`
  if ((status === 400 || status === 413 || status === 422) && tooLong.test(text)) return 'context_length_exceeded'
  if (status === 413) return 'payload_too_large'
  if (status === 400 || status === 422) return callerCode(words.code) ?? 'invalid_value'
  if (status === 503 && loading.test(text)) return 'model_warming_up'
  const full = status === 429 || status === 529 || (status === 503 && overloaded.test(text))
  return full && !quotaExceeded.test(text) ? 'no_capacity' : 'worker_error'
}

/**
 * Turns an error of an engine into a Failure. An error of the caller keeps its 4xx and the engine's message without paths
 * and addresses, because only the engine knows what is wrong with a value. For other errors callers get the class, and the
 * log gets the message. A 401 or 404 of an engine is never an error of the caller, because infer chose the key and the path.
 */
export function failureOfEngine(status: number, words: EngineError, code = codeOf(status, words)): Failure {
  const engineText = oneLine(words.message)
  const callerText = withoutLocations(engineText)
  if (code === 'worker_error') {
    const why = faultClass(engineText)
    const message = `The engine answered ${status}${why ? `: ${why}` : ''}. Trying again may help.`
    return new Failure(code, message, { engineText })
  }
  if (code === 'model_warming_up' || code === 'no_capacity') {
    const what = code === 'no_capacity' ? 'takes no more requests' : 'is still loading'
    return new Failure(code, `The engine ${what}. Try again later.`, { engineText })
  }
  const param = words.param ?? undefined
  if (code === 'context_length_exceeded') return tooLongPrompt(words, callerText)
  return new Failure(
    code,
    callerText ? `The engine refused the request: ${callerText}` : `The engine refused the request (${status}).`,
    { param },
  )
}

/** How OpenAI begins to say that a prompt is too long, by which programs recognize it and shorten the conversation. */
const saysLimit = /^This model's maximum context length is \d/

/**
 * The failure of a prompt that is too long. Its message begins with OpenAI's sentence about the limit. vLLM and the engines of
 * infer send that sentence themselves, so their message is passed on.
 */
function tooLongPrompt({ tokens, context, param }: EngineError, text: string): Failure {
  const limit =
    context === null
      ? "The prompt exceeds this model's maximum context length."
      : `This model's maximum context length is ${context} tokens.`
  // vLLM stops counting at the first token too many.
  const least = text.includes(`at least ${tokens} `) ? 'at least ' : ''
  const count = tokens === null ? '' : ` The request has ${least}${tokens} tokens.`
  const said = /shorten|reduce/i.test(text) ? text : `${text} Shorten it.`
  return new Failure(
    'context_length_exceeded',
    saysLimit.test(text) ? said : `${limit}${count} Shorten it. The engine says: ${text}`,
    {
      ...(param === null ? {} : { param }),
      ...(tokens === null || context === null ? {} : { facts: { prompt_tokens: tokens, context_length: context } }),
    },
  )
}

/**
 * Returns the error in an answer with status 200, or in an event of a stream; undefined without an error. A number in
 * `code` is used as the status.
 */
export function errorIn(value: Record<string, unknown>, event?: string): Failure | undefined {
  const wrong =
    (value.error !== undefined && value.error !== null) ||
    value.object === 'error' ||
    event === 'error' ||
    (value.choices === undefined && value.data === undefined && value.detail !== undefined)
  if (!wrong) return undefined
  const words = engineErrorOf(value)
  const status = Number(words.code ?? Number.NaN)
  const code = status >= 400 && status < 600 ? codeOf(status, words) : codeOf(callerCode(words.code) ? 400 : 500, words)
  if (code !== 'worker_error') return failureOfEngine(status || 400, words, code)
  const engineText = oneLine(words.message)
  const why = faultClass(engineText)
  const message = `The engine gave up on its answer${why ? `: ${why}` : ''}. Trying again may help.`
  return new Failure('worker_error', message, { engineText })
}
