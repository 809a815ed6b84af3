import { z } from 'zod'

type JsonSchema = z.core.JSONSchema.BaseSchema

/** Options for converting zod schemas to the JSON Schemas of the reference. */
export const emitted = {
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

/** Returns a reference to a schema with a name. */
export function schemaReference(schema: z.ZodType): { $ref: string } {
  const id = z.globalRegistry.get(schema)?.id
  if (!id) throw new Error('A body or response schema needs .meta({ id })')
  return { $ref: `#/components/schemas/${id}` }
}
