import { z } from 'zod'

/*
 * Schemas of the fields of requests and answers. Each takes the description that the API reference shows: a field
 * without one fails a test.
 */
export const string = (description: string) => z.string().describe(description)
export const integer = (description: string) => z.int().describe(description)
export const number = (description: string) => z.number().describe(description)
export const boolean = (description: string) => z.boolean().describe(description)
export const optionalString = (description: string) => z.string().optional().describe(description)
export const optionalInteger = (description: string) => z.int().optional().describe(description)
export const optionalNumber = (description: string) => z.number().optional().describe(description)
export const optionalBoolean = (description: string) => z.boolean().optional().describe(description)
export const nullableString = (description: string) => z.string().nullable().describe(description)
export const nullableInteger = (description: string) => z.int().nullable().describe(description)
export const nullableNumber = (description: string) => z.number().nullable().describe(description)

export const array = <Item extends z.ZodType>(description: string, item: Item) => z.array(item).describe(description)
export const object = <Shape extends z.ZodRawShape>(description: string, shape: Shape) =>
  z.object(shape).describe(description)

/** An object that the reference lists by its name. */
export const namedObject = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.object(shape).meta({ id, description })
/** The same with other members refused: a request below `/api` or `/slug`. */
export const strictObject = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.strictObject(shape).meta({ id, description })
/** The same with other members allowed. */
export const looseObject = <Shape extends z.ZodRawShape>(id: string, description: string, shape: Shape) =>
  z.looseObject(shape).meta({ id, description })
