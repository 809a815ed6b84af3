import type { ParameterType } from './definition.ts'
import { jsonType, type Kinds, mayFit } from './schema-walk.ts'

const media: ReadonlySet<ParameterType> = new Set(['image', 'audio', 'video', 'file'])
/** What a parameter of the type holds, as JSON types: media come as addresses or ids of files. */
export const kindsOfParameter = (type: ParameterType): Kinds => new Set([media.has(type) ? 'string' : type])

/** What a value is, where it is not of the type; undefined where it is. */
export function misfit(value: unknown, type: ParameterType): string | undefined {
  const kind = jsonType(value)
  return mayFit(new Set([kind]), kindsOfParameter(type)) ? undefined : kind
}
