import type { z } from 'zod'
import { invalid } from '../../core/failure.ts'

/** Parses a request that only infer writes: every wrong field has the code `invalid_value`. Throws Failure. */
export function parsedCall<T>(schema: z.ZodType<T>, body: unknown): T {
  const read = schema.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const param = issue?.path.join('.') || 'body'
  throw invalid(param, `'${param}' is invalid: ${issue?.message}.`)
}
