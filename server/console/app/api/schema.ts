import type { components } from './types.generated.ts'

/** A schema of the API by its name. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name]

/** A JSON Schema, as far as forms and the editor read it. */
export interface JsonSchema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  description?: string
  minimum?: number
  maximum?: number
  $defs?: Record<string, JsonSchema>
}
