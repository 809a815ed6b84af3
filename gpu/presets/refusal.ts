import { Failure, type FailureCode } from '../../core/failure.ts'

/** What an engine said was wrong, out of the several shapes that engines say it in. */
export function wordsOf(body: string): { message: string; type: string } {
  try {
    const value = JSON.parse(body) as Record<string, unknown> | null
    const inner = value?.error ?? value
    if (typeof inner === 'string') return { message: inner, type: '' }
    const { message, type, detail } = (inner ?? {}) as Record<string, unknown>
    return { message: text(message ?? detail), type: text(type) }
  } catch {
    return { message: body, type: '' }
  }
}

const text = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

/** Words that mean a prompt was too long, as vLLM, llama.cpp, SGLang, TEI and the hosted services say it. */
const tooLong =
  /maximum context length|context (length|size|window)|exceed_context_size|longer than the (model's )?(maximum|context)|input is too (large|long)|too many tokens|increase the physical batch size|must have less than \d+ tokens/i

/** A rule for one engine's quirk: what it says, and what that means. */
export interface Quirk {
  status: number
  says: RegExp
  code: FailureCode
}

/**
 * An engine's refusal as ours. A caller's mistake keeps its 4xx and the engine's words, because only the engine knows
 * what is wrong with a value; anything else is the engine's fault and may be tried again. A 401 or 404 from an engine
 * is never the caller's: the caller has shown us another key, and we chose the path.
 */
export function refusal(status: number, body: string, quirks: readonly Quirk[] = []): Failure {
  const { message, type } = wordsOf(body)
  const said = message
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, 500)
  const quirk = quirks.find(one => one.status === status && one.says.test(`${type} ${message}`))
  const code = quirk?.code ?? codeOf(status, `${type} ${message}`)
  if (code === 'worker_error')
    return new Failure(code, `The engine answered ${status}${said ? `: ${said}` : ''}. Trying again may help.`)
  return new Failure(
    code,
    said ? `The engine refused the request: ${said}` : `The engine refused the request (${status}).`,
  )
}

function codeOf(status: number, said: string): FailureCode {
  if (status === 413) return 'payload_too_large'
  if (status !== 400 && status !== 422) return 'worker_error'
  return tooLong.test(said) ? 'context_length_exceeded' : 'invalid_value'
}
