import type { Failure } from '../../core/failure.ts'
import { CommandFailure, isUnexpectedValue, UnreadableAnswer } from './exit-codes.ts'
import { type Paint, printableJson, printableStyled } from './styled-line.ts'

/** Formats a Failure for a terminal: the message, the invalid fields, when to retry. */
export function failureText(failure: Failure, paint: Paint): string {
  const lines = [`${paint.bad('Error:')} ${failure.message}`]
  for (const { path, message } of failure.details ?? []) {
    // The message is often that of the first field, with file and line before it.
    if (failure.message.endsWith(message)) continue
    lines.push(message.includes(`'${path}'`) ? `  ${message}` : `  ${paint.name(path)}: ${message}`)
  }
  if (failure.retryAfterMs !== undefined) lines.push(paint.faint(`Try again in ${seconds(failure.retryAfterMs)}.`))
  const requestId = failure.facts?.request_id
  if (typeof requestId === 'string') lines.push(paint.faint(`Request ${requestId}`))
  // An unexpected error is shown with its stack, because the user at the terminal can report it.
  const unexpected = unexpectedError(failure)
  if (unexpected) lines.push(paint.faint(unexpected.stack ?? unexpected.message))
  return printableStyled(`${lines.join('\n')}\n`, paint)
}

function unexpectedError(failure: Failure): Error | undefined {
  const { cause } = failure
  if (cause instanceof UnreadableAnswer) return isUnexpectedValue(cause.cause) ? cause.cause : undefined
  const isInternal = failure.code === 'internal_error' && !(failure instanceof CommandFailure)
  return isInternal && cause instanceof Error ? cause : undefined
}

/** Formats a Failure for a program: the error body of the HTTP API, on one line. */
export function failureJson(failure: Failure): string {
  return `${printableJson({
    error: {
      code: failure.code,
      message: failure.message,
      type: failure.type,
      param: failure.param ?? null,
      ...(failure.retryAfterMs === undefined ? {} : { retry_after: Math.ceil(failure.retryAfterMs / 1000) }),
      ...(failure.details ? { details: failure.details } : {}),
      ...failure.facts,
    },
  })}\n`
}

const seconds = (ms: number): string => {
  const whole = Math.max(1, Math.ceil(ms / 1000))
  return whole === 1 ? '1 second' : `${whole} seconds`
}
