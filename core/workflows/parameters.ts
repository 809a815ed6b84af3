import type { Parameter, Parameters, ParameterType } from '../dag/definition.ts'
import { Failure, type FailureCode, type FailureDetail } from '../failure.ts'
import { unknownField } from '../schemas/issues.ts'
import { jsonType, type Kinds, mayFit } from '../schemas/schema-walk.ts'
import type { DiagnosticFinding, TypeIssue } from './diagnostics.ts'

const media: ReadonlySet<ParameterType> = new Set(['image', 'audio', 'video', 'file'])
/** The JSON types of a parameter type: media are URLs or file ids. */
export const kindsOfParameter = (type: ParameterType): Kinds => new Set([media.has(type) ? 'string' : type])

/** The actual type of a value that does not have the type; undefined if it has. */
export function misfit(value: unknown, type: ParameterType): string | undefined {
  const kind = jsonType(value)
  return mayFit(new Set([kind]), kindsOfParameter(type)) && (type !== 'integer' || kind === 'integer')
    ? undefined
    : kind
}

/**
 * Returns the parameters of an execution, with defaults for missing ones. `used`: the parameters that references name;
 * an undeclared one must be given. `kept`: names that pass although the workflow has no such parameter. Throws Failure
 * `missing_required_parameter`, `unknown_parameter`, `invalid_type` or `invalid_value`, whose `param` is
 * `input_params.<name>`.
 */
export function fillParameters(
  given: Readonly<Record<string, unknown>>,
  declared: Parameters | null,
  used: ReadonlySet<string>,
  kept: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const filled: Record<string, unknown> = { ...given }
  const wrong: FailureDetail<FailureCode>[] = []
  const report = (code: FailureCode, name: string, message: string) =>
    void wrong.push({ code, path: `input_params.${name}`, message })
  const missing = (name: string) =>
    report('missing_required_parameter', name, `Missing required parameter: 'input_params.${name}'.`)
  for (const [name, parameter] of Object.entries(declared ?? {})) {
    if (Object.hasOwn(given, name)) {
      const fault = parameterFault(given[name], parameter)
      if (fault) report(fault.code, name, `'input_params.${name}' ${fault.message}`)
    } else if (parameter.default !== undefined) filled[name] = parameter.default
    else if (parameter.required !== false) missing(name)
  }
  for (const name of used) if (!Object.hasOwn(filled, name) && !Object.hasOwn(declared ?? {}, name)) missing(name)
  const known = new Set([...Object.keys(declared ?? {}), ...used])
  for (const name of Object.keys(given))
    if (!known.has(name) && !Object.hasOwn(kept, name)) wrong.push(unknownField('input_params', name, known))
  const [first] = wrong
  if (!first) return filled
  throw new Failure(first.code, first.message, { param: first.path, details: wrong.length > 1 ? wrong : undefined })
}

/** Optional parameters without a value: references to them give null or an empty text. */
export const absentParameters = (given: Readonly<Record<string, unknown>>, declared: Parameters | null): Set<string> =>
  new Set(Object.keys(declared ?? {}).filter(name => !Object.hasOwn(given, name)))

/** What is wrong in the declaration of a parameter. */
export function declarationFaults(name: string, parameter: Parameter): DiagnosticFinding<TypeIssue>[] {
  const { type, default: value, enum: values, minimum, maximum } = parameter
  const path = `parameters.${name}`
  const found: DiagnosticFinding<TypeIssue>[] = []
  const mistyped = (what: string, at: string, one: unknown): boolean => {
    const actual = misfit(one, type)
    if (actual === undefined) return false
    const message = `The ${what} of the parameter '${name}' is ${actual}, and its type is ${type}.`
    found.push({ code: 'input_param_type', message, path: `${path}.${at}`, expected: type, actual })
    return true
  }
  const outOfRange = (message: string, at: string) =>
    void found.push({ code: 'value_out_of_range', message, path: `${path}.${at}` })
  values?.forEach((one, at) => mistyped(`value ${at + 1} of 'enum'`, `enum[${at}]`, one))
  if (minimum != null && maximum != null && minimum > maximum)
    outOfRange(`The minimum of the parameter '${name}' is more than its maximum.`, 'minimum')
  if (value === undefined || mistyped('default', 'default', value)) return found
  const fault = parameterFault(value, parameter)
  if (fault) outOfRange(`The default of the parameter '${name}' ${fault.message}`, 'default')
  return found
}

/** Why a value does not fit a parameter: the end of a sentence that begins with its name. */
export function parameterFault(
  value: unknown,
  { type, required, enum: values, minimum, maximum }: Parameter,
): { code: FailureCode; message: string } | undefined {
  if (value === null && required === false) return undefined
  const kind = misfit(value, type)
  if (kind !== undefined) return { code: 'invalid_type', message: `is of type ${kind}; expected ${type}.` }
  const invalid = (message: string) => ({ code: 'invalid_value' as const, message })
  if (values && !values.some(one => JSON.stringify(one) === JSON.stringify(value)))
    return invalid(`must be one of ${values.map(one => JSON.stringify(one)).join(', ')}.`)
  if (typeof value !== 'number') return undefined
  if (minimum != null && value < minimum) return invalid(`must be ${minimum} or more.`)
  if (maximum != null && value > maximum) return invalid(`must be ${maximum} or less.`)
  return undefined
}
