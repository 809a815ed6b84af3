import { Failure } from '../../../core/failure.ts'

/**
 * Throws Failure `invalid_value` if a signed URL has a parameter twice. Programs differ in which of the two they use,
 * so a proxy or cache could use another expiry than the signed one.
 */
export function refuseRepeated(query: URLSearchParams): void {
  for (const name of ['exp', 'sig', 'org', 'type', 'kept'])
    if (query.getAll(name).length > 1)
      throw new Failure('invalid_value', `The URL has the parameter '${name}' twice. Use the URL unchanged.`, {
        param: name,
      })
}
