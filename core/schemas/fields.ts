import { z } from 'zod'

/*
 * Schemas of the fields of requests and answers. Each function takes the description that the API reference shows: a
 * field without one fails a test. An optional field may be absent; a nullish one may be null too, which means the same.
 */
export const string = (description: string) => z.string().describe(description)
export const integer = (description: string) => z.int().describe(description)
export const number = (description: string) => z.number().describe(description)
export const boolean = (description: string) => z.boolean().describe(description)
export const optional = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.optional().describe(description)
export const optionalString = (description: string) => optional(z.string(), description)
export const optionalInteger = (description: string) => optional(z.int(), description)
export const optionalNumber = (description: string) => optional(z.number(), description)
export const optionalBoolean = (description: string) => optional(z.boolean(), description)
/** A text of at most this many characters. */
export const optionalStringUpTo = (maxLength: number, description: string) =>
  optional(z.string().max(maxLength), description)
export const nullable = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.nullable().describe(description)
export const nullableString = (description: string) => nullable(z.string(), description)
export const nullableInteger = (description: string) => nullable(z.int(), description)
export const nullableNumber = (description: string) => nullable(z.number(), description)
export const nullish = <Schema extends z.ZodType>(schema: Schema, description: string) =>
  schema.nullish().describe(description)
export const nullishString = (description: string) => nullish(z.string(), description)
export const nullishInteger = (description: string) => nullish(z.int(), description)
export const nullishBoolean = (description: string) => nullish(z.boolean(), description)

export const oneOf = <const Values extends readonly string[]>(description: string, values: Values) =>
  z.enum(values).describe(description)
export const optionalOneOf = <const Values extends readonly string[]>(description: string, values: Values) =>
  optional(z.enum(values), description)
/** A query parameter that is a boolean. */
export const flag = (description: string) => optionalOneOf(description, ['true', 'false'])
export const anything = (description: string) => z.unknown().describe(description)
export const anyObject = (description: string) => z.record(z.string(), z.unknown()).describe(description)

/** Without a description, for lists and unions; a description would be that of every use. */
export const nonEmptyText = z.string().min(1)
export const nonEmptyString = (description: string) => z.string().min(1).describe(description)
export const tokenIds = z.array(z.int().min(0)).min(1)
export const modelId = nonEmptyText.max(256).describe('Id of the model, as in `GET /std/v1/models`.')

/**
 * The latest time of a request, Unix seconds: in the year 2286. As milliseconds it is 26 April 1970, so a time in
 * milliseconds of any later day is more.
 */
export const latestTime = 9_999_999_999
const isTime = (seconds: number) => seconds <= latestTime
const notLater = { params: { unixSeconds: true } }
/** A time in Unix seconds. Without a description, as `queryTime`: several fields share them. */
export const unixTime = z.int().min(0).refine(isTime, notLater).meta({ maximum: latestTime })
/** An optional time of a query. */
export const queryTime = z.coerce
  .number()
  .int()
  .min(0)
  .refine(isTime, notLater)
  .meta({ maximum: latestTime })
  .optional()

/** The same with milliseconds after the point; 0 if it is absent. */
export const exactQueryTime = z.coerce.number().min(0).refine(isTime, notLater).meta({ maximum: latestTime }).default(0)

/** A whole number from 0. */
export const count = (description: string) => z.int().min(0).describe(description)
export const array = <Item extends z.ZodType>(description: string, item: Item) => z.array(item).describe(description)
export const object = <Shape extends z.ZodRawShape>(description: string, shape: Shape) =>
  z.object(shape).describe(description)
export const optionalObject = <Shape extends z.ZodRawShape>(description: string, shape: Shape) =>
  optional(z.object(shape), description)
export const nullishObject = <Shape extends z.ZodRawShape>(description: string, shape: Shape) =>
  nullish(z.object(shape), description)
/** A list of objects with these members. */
export const objects = <Shape extends z.ZodRawShape>(description: string, shape: Shape) =>
  array(description, z.object(shape))

/** An object that the reference lists by its name. */
export const namedObject = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.object(shape).meta({ id, description })
/** The same with other members refused: a request below `/api` or `/slug`. */
export const strictObject = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.strictObject(shape).meta({ id, description })
/** The same with other members allowed. */
export const looseObject = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.looseObject(shape).meta({ id, description })

/**
 * A member that the API does not support yet. It is refused by name: if it were ignored, callers would believe that it
 * works.
 */
export const notImplemented = z
  .unknown()
  .refine(value => value == null, { params: { notImplemented: true } })
  .optional()
  .meta({ description: 'Not supported yet. Any value but null is refused.' })
