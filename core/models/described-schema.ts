import { bytesText, durationText } from '../quantity-text.ts'
import type { TypeSchema } from '../schemas/type-text.ts'

/** A JSON Schema whose keys have the metadata of the configuration reference. */
export interface DescribedSchema extends TypeSchema {
  $ref?: string
  $defs?: Record<string, DescribedSchema>
  properties?: Record<string, DescribedSchema>
  additionalProperties?: DescribedSchema | boolean
  required?: string[]
  items?: DescribedSchema
  anyOf?: DescribedSchema[]
  oneOf?: DescribedSchema[]
  description?: string
  default?: unknown
  examples?: unknown[]
  /** Unit of a number: `requests`, `tokens`. Values in `milliseconds` and `bytes` may be written with a unit. */
  unit?: string
  example?: unknown
  /** The behaviour without the key, if it has no default. */
  absent?: string
  /** Other keys of the model, or of the file, that its example needs. */
  with?: Record<string, unknown>
}

/** Returns a value as it is written in the file: `1MiB`, `30s`. */
export function writtenValue(value: unknown, unit: string | undefined): unknown {
  if (Array.isArray(value)) return value.map(one => writtenValue(one, unit))
  if (typeof value !== 'number') return value
  return unit === 'milliseconds' ? durationText(value) : unit === 'bytes' ? bytesText(value) : value
}

/** Returns a default as it is written in the file. */
export const writtenDefault = ({ default: value, unit }: DescribedSchema): unknown => writtenValue(value, unit)

const unitTexts: Record<string, string> = {
  milliseconds: 'A duration such as `30s`, or a number of milliseconds.',
  bytes: 'A size such as `512MiB`, or a number of bytes.',
}

/** Returns the schema with keywords of the standard only, so that editors show unit, example and default of a key. */
export function standardSchema(schema: DescribedSchema): object {
  const { $defs, properties, items, anyOf, oneOf, description, unit, example, absent, with: _with, ...rest } = schema
  const each = (of: Record<string, DescribedSchema>) =>
    Object.fromEntries(Object.entries(of).map(([name, one]) => [name, standardSchema(one)]))
  const { additionalProperties } = rest
  const text = [
    description,
    description === undefined || unit === undefined ? undefined : (unitTexts[unit] ?? `Unit: ${unit}.`),
    absent === undefined ? undefined : `When absent: ${absent}.`,
  ].filter(part => part !== undefined)
  return {
    ...rest,
    description: text.length > 0 ? text.join(' ') : undefined,
    default: writtenDefault(schema),
    examples: example === undefined ? undefined : [example],
    properties: properties && each(properties),
    additionalProperties:
      typeof additionalProperties === 'object' ? standardSchema(additionalProperties) : additionalProperties,
    items: items && standardSchema(items),
    anyOf: anyOf?.map(standardSchema),
    oneOf: oneOf?.map(standardSchema),
    $defs: $defs && each($defs),
  }
}
