/** The part of a JSON Schema that describes a type. */
export interface TypeSchema {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: TypeSchema[]
  oneOf?: TypeSchema[]
  items?: TypeSchema
  minimum?: number
  maximum?: number
}

const names: Record<string, string> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
}

/**
 * Returns the type of a value in words, such as `whole number 1 to 50` or `"png" or "webp"`. `follow` resolves a
 * reference. Null, which stands for an absent field, is left out.
 */
export function typeText<S extends TypeSchema>(schema: S, follow: (schema: S) => S): string {
  const of = (one: TypeSchema): string => typeText(follow(one as S), follow)
  const { type, enum: values, anyOf, oneOf, items, minimum, maximum } = schema
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (values) return values.map(value => JSON.stringify(value)).join(' or ')
  const choices = (anyOf ?? oneOf)?.map(one => follow(one as S)).filter(one => one.type !== 'null')
  if (choices) return [...new Set(choices.map(of))].join(' or ')
  const kind = Array.isArray(type) ? type.find(one => one !== 'null') : type
  if (kind === 'array') {
    const item = items ? of(items) : ''
    return item === '' || item === 'object' ? 'list of objects' : `list of ${item}`
  }
  const name = names[kind ?? ''] ?? 'anything'
  const min = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum
  const max = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (min !== undefined && max !== undefined) return `${name} ${min} to ${max}`
  if (min !== undefined) return `${name} from ${min}`
  return max === undefined ? name : `${name} up to ${max}`
}
