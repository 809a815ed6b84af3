import { z } from 'zod'

/** A field of a request or a result. */
export interface Field {
  /** Such as `choices[].message.content`. */
  path: string
  /** Such as `text`, `whole number 1 to 50`, `"png" or "webp"`. */
  type: string
  isRequired: boolean
  description: string
}

interface Schema {
  $ref?: string
  $defs?: Record<string, Schema>
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minimum?: number
  maximum?: number
  description?: string
}

/** The JSON Schema (2020-12) of what a task takes or gives. */
export const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): object =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' })

/** The fields of an object schema in their order; with `deep` also those of objects and lists in it. */
export function fieldsOf(root: object, { deep }: { deep: boolean }): Field[] {
  const definitions = (root as Schema).$defs ?? {}
  const follow = (schema: Schema): Schema => {
    const { $ref: reference, ...rest } = schema
    const target = reference === undefined ? undefined : definitions[reference.split('/').at(-1)!]
    return target ? follow({ ...target, ...rest }) : schema
  }

  function walk(schema: Schema, before: string, depth: number): Field[] {
    const { properties = {}, required = [] } = schema
    return Object.entries(properties).flatMap(([name, value]) => {
      const property = given(follow(value))
      const path = `${before}${name}`
      const field = {
        path,
        type: typeText(property, follow),
        isRequired: required.includes(name),
        description: value.description ?? property.description ?? '',
      }
      if (!deep || depth === 0) return [field]
      const items = property.items && given(follow(property.items))
      if (items?.properties) return [field, ...walk(items, `${path}[].`, depth - 1)]
      return [field, ...walk(property, `${path}.`, depth - 1)]
    })
  }

  /** Without the null that stands for an absent field. */
  function given(schema: Schema): Schema {
    const choices = (schema.anyOf ?? schema.oneOf)?.map(follow).filter(({ type }) => type !== 'null')
    return choices?.length === 1
      ? given({ ...choices[0], ...(schema.description ? { description: schema.description } : {}) })
      : schema
  }

  return walk(follow(root), '', 5)
}

const names: Record<string, string> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  object: 'object',
}

/** Types in plain words. */
function typeText(schema: Schema, follow: (schema: Schema) => Schema): string {
  const { type, enum: values, anyOf, oneOf, items, minimum, maximum } = schema
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (values) return values.map(value => JSON.stringify(value)).join(' or ')
  const choices = (anyOf ?? oneOf)?.map(follow).filter(one => one.type !== 'null')
  if (choices) return [...new Set(choices.map(one => typeText(one, follow)))].join(' or ')
  const kind = Array.isArray(type) ? type.find(one => one !== 'null') : type
  if (kind === 'array') {
    const of = items ? typeText(follow(items), follow) : ''
    return of === '' || of === 'object' ? 'list of objects' : `list of ${of}`
  }
  const name = names[kind ?? ''] ?? 'anything'
  const least = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum
  const most = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum
  if (least !== undefined && most !== undefined) return `${name} ${least} to ${most}`
  if (least !== undefined) return `${name} from ${least}`
  return most === undefined ? name : `${name} up to ${most}`
}
