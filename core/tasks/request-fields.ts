import { Failure } from '../failure.ts'
import { isObject } from '../json.ts'
import { unknownField } from '../schemas/issues.ts'
import { membersAt } from '../schemas/schema-walk.ts'
import type { TaskRecord } from './task.ts'

type Fields = Pick<TaskRecord, 'request' | 'otherFields'>

/** Returns the names that the inputs of a task may have for a model with these `extra_params`. */
export const requestFields = ({ request, otherFields }: Fields, extraParams: readonly string[]): string[] => [
  ...membersAt(request),
  ...Object.keys(otherFields),
  ...extraParams,
]

/**
 * Throws Failure `unknown_parameter` for inputs with fields that the task does not know, with the most similar known
 * names. Inputs that are not an object are left to the check of the task.
 */
export function checkRequestFields(record: Fields, inputs: unknown, extraParams: readonly string[]): void {
  if (!isObject(inputs)) return
  const known = requestFields(record, extraParams)
  const names = new Set(known)
  const found = Object.keys(inputs)
    .filter(name => !names.has(name))
    .slice(0, 20)
    .map(name => ({ name, ...unknownField('', name, known) }))
  const [first] = found
  if (!first) return
  throw new Failure('unknown_parameter', first.message, {
    param: first.path,
    details: found.length > 1 ? found.map(({ code, path, message }) => ({ code, path, message })) : undefined,
    validation: found.map(({ name }) => ({
      loc: ['body', name],
      msg: 'Extra inputs are not permitted',
      type: 'extra_forbidden',
    })),
  })
}
