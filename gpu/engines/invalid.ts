import type { z } from 'zod'
import { Failure, type FailureCode } from '../../core/failure.ts'
import { failureOfIssues } from '../../core/schemas/issues.ts'

/** The failure of a field or option that cannot be as it was sent. */
export const invalid = (param: string, message: string, code: FailureCode = 'invalid_value'): Failure =>
  new Failure(code, message, { param })

/** Parses a request by its schema. Throws Failure with the code and the path of the first wrong field. */
export function parsed<T>(schema: z.ZodType<T>, body: unknown): T {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  throw failureOfIssues(read.error, body)
}

/** The same for engines whose requests only infer writes: every wrong field has the code `invalid_value`. */
export function parsedCall<T>(schema: z.ZodType<T>, body: unknown): T {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const param = issue?.path.join('.') || 'body'
  throw invalid(param, `'${param}' is invalid: ${issue?.message}.`)
}
