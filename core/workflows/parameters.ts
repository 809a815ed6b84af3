import type { Parameter, Parameters, ParameterType } from '../dag/definition.ts'
import { Failure, type FailureCode, type FailureDetail } from '../failure.ts'
import { jsonType, type Kinds, mayFit } from '../schemas/schema-walk.ts'

const media: ReadonlySet<ParameterType> = new Set(['image', 'audio', 'video', 'file'])
/** What a parameter of the type holds, as JSON types: media come as addresses or ids of files. */
export const kindsOfParameter = (type: ParameterType): Kinds => new Set([media.has(type) ? 'string' : type])

/** What a value is, where it is not of the type; undefined where it is. */
export function misfit(value: unknown, type: ParameterType): string | undefined {
  const kind = jsonType(value)
  return mayFit(new Set([kind]), kindsOfParameter(type)) && (type !== 'integer' || kind === 'integer')
    ? undefined
    : kind
}

/**
 * What a run is given, with the defaults where nothing is. `used` are the parameters that references name: one that is
 * not declared must be given all the same. Throws Failure `missing_required_parameter`, `invalid_type` or
 * `invalid_value`, whose `param` is `input_params.<name>`.
 */
export function fillParameters(
  given: Readonly<Record<string, unknown>>,
  declared: Parameters | null,
  used: ReadonlySet<string>,
): Record<string, unknown> {
  const filled: Record<string, unknown> = { ...given }
  const wrong: FailureDetail<FailureCode>[] = []
  const say = (code: FailureCode, name: string, message: string) =>
    void wrong.push({ code, path: `input_params.${name}`, message })
  const missing = (name: string) =>
    say('missing_required_parameter', name, `Missing required parameter: 'input_params.${name}'.`)
  for (const [name, parameter] of Object.entries(declared ?? {})) {
    if (Object.hasOwn(given, name)) {
      const fault = faultOf(given[name], parameter)
      if (fault) say(fault.code, name, `'input_params.${name}' ${fault.message}`)
    } else if (parameter.default !== undefined) filled[name] = parameter.default
    else if (parameter.required !== false) missing(name)
  }
  for (const name of used) if (!Object.hasOwn(filled, name) && !Object.hasOwn(declared ?? {}, name)) missing(name)
  const [first] = wrong
  if (!first) return filled
  throw new Failure(first.code, first.message, { param: first.path, details: wrong.length > 1 ? wrong : undefined })
}

/** Those that need not be given and have not been: who refers to them gets nothing. */
export const absentParameters = (given: Readonly<Record<string, unknown>>, declared: Parameters | null): Set<string> =>
  new Set(Object.keys(declared ?? {}).filter(name => !Object.hasOwn(given, name)))

function faultOf(
  value: unknown,
  { type, required, enum: values, minimum, maximum }: Parameter,
): { code: FailureCode; message: string } | undefined {
  if (value === null && required === false) return undefined
  const kind = misfit(value, type)
  if (kind !== undefined) return { code: 'invalid_type', message: `is of type ${kind}, and ${type} is expected.` }
  const invalid = (message: string) => ({ code: 'invalid_value' as const, message })
  if (values && !values.some(one => JSON.stringify(one) === JSON.stringify(value)))
    return invalid(`must be one of ${values.map(one => JSON.stringify(one)).join(', ')}.`)
  if (typeof value !== 'number') return undefined
  if (minimum != null && value < minimum) return invalid(`must be ${minimum} or more.`)
  if (maximum != null && value > maximum) return invalid(`must be ${maximum} or less.`)
  return undefined
}
