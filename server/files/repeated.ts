import { Failure } from '../../core/failure.ts'

/**
 * Throws Failure `invalid_value` for a parameter of a signed address that is there twice. Readers differ in which of
 * the two counts, so that a proxy or cache could use another time of expiry than the one that was signed.
 */
export function refuseRepeated(query: URLSearchParams): void {
  for (const name of ['exp', 'sig', 'org', 'type', 'kept'])
    if (query.getAll(name).length > 1)
      throw new Failure('invalid_value', `The URL has the parameter '${name}' twice. Use the URL unchanged.`, {
        param: name,
      })
}
