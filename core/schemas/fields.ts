import { z } from 'zod'

/** Fields of requests and of answers, with what the API reference says about them. */

export const text = (description: string) => z.string().describe(description)
export const integer = (description: string) => z.int().describe(description)
export const number = (description: string) => z.number().describe(description)

/** A field that may be absent or null, which mean the same. */
export const optional = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.nullish().describe(description)
export const optionalText = (description: string) => optional(z.string(), description)
export const optionalBoolean = (description: string) => optional(z.boolean(), description)

/** A field that may be absent, but not null. */
export const omittable = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.optional().describe(description)

export const nonEmptyText = z.string().min(1)
export const tokenIds = z.array(z.int().min(0)).min(1)
export const modelId = nonEmptyText.max(256).describe('Id of the model, as in `GET /std/v1/models`.')

/**
 * A member that the API does not support yet. It is refused by name: if it were ignored, callers would believe that it
 * works.
 */
export const notImplemented = z
  .unknown()
  .refine(value => value == null, { params: { notImplemented: true } })
  .optional()
  .meta({ description: 'Not supported yet. Any value but null is refused.' })
