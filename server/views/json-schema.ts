import { z } from 'zod'

type JsonSchema = z.core.JSONSchema.BaseSchema

/** Options for converting zod schemas to the JSON Schemas of the reference. */
export const jsonSchemaOptions = {
  io: 'input',
  unrepresentable: 'any',
  override({ jsonSchema }: { jsonSchema: JsonSchema }) {
    // Zod adds the bounds of JavaScript's safe integers, which are no limits of the API.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    for (const property of Object.values(jsonSchema.properties ?? {}))
      if (typeof property === 'object' && property.const !== undefined)
        property.description ??= `Always \`${String(property.const)}\`.`
  },
} as const
