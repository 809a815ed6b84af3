import { z } from 'zod'
import { typeText } from '../../core/schemas/type-text.ts'

/** A field of a request or a result. */
export interface TaskField {
  /** Such as `choices[].message.content`; `*` stands for any name. */
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
  additionalProperties?: Schema | boolean
  minimum?: number
  maximum?: number
  description?: string
}

/** Returns the JSON Schema (2020-12) of a task's request or result. */
export const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): object =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' })

/** Returns the fields of an object schema in order; with `deep` also those of nested objects and lists. */
export function fieldsOf(root: object, { deep }: { deep: boolean }): TaskField[] {
  const definitions = (root as Schema).$defs ?? {}
  const follow = (schema: Schema): Schema => {
    const { $ref: reference, ...rest } = schema
    const target = reference === undefined ? undefined : definitions[reference.split('/').at(-1)!]
    return target ? follow({ ...target, ...rest }) : schema
  }

  function walk(schema: Schema, before: string, depth: number): TaskField[] {
    const { required = [], additionalProperties: others } = schema
    const ofAnyName = typeof others === 'object' && others.properties ? { '*': others } : {}
    const { properties = ofAnyName } = schema
    return Object.entries(properties).flatMap(([name, value]) => {
      const property = withoutNull(follow(value))
      const path = `${before}${name}`
      const field = {
        path,
        type: typeText(property, follow),
        isRequired: required.includes(name),
        description: value.description ?? property.description ?? '',
      }
      if (!deep || depth === 0) return [field]
      const items = property.items && withoutNull(follow(property.items))
      if (items?.properties) return [field, ...walk(items, `${path}[].`, depth - 1)]
      return [field, ...walk(property, `${path}.`, depth - 1)]
    })
  }

  /** Removes the null alternative, which means that the field may be absent. */
  function withoutNull(schema: Schema): Schema {
    const choices = (schema.anyOf ?? schema.oneOf)?.map(follow).filter(({ type }) => type !== 'null')
    return choices?.length === 1
      ? withoutNull({ ...choices[0], ...(schema.description ? { description: schema.description } : {}) })
      : schema
  }

  return walk(follow(root), '', 5)
}
