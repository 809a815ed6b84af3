import { Failure } from './failure.ts'

/** The failure for a field, header or query parameter whose value is not allowed. */
export const invalidValue = (param: string, message: string): Failure =>
  new Failure('invalid_value', message, { param })
