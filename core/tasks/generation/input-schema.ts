import { z } from 'zod'
import type { Resolution } from '../../schemas/resolution.ts'
import { type GenerationTask, operationOf } from '../../schemas/task.ts'
import { generationRequests } from './request.ts'
import { defaultResolutions } from './size.ts'

interface Schema {
  type?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  maximum?: number
  properties?: Record<string, Schema>
  [name: string]: unknown
}

const cache = new Map<string, object>()

/** Returns the request of a task as a self-contained JSON Schema (2020-12), for forms and workflows. */
export function inputSchema(task: GenerationTask, resolutions: readonly Resolution[] = defaultResolutions): object {
  const key = `${task} ${resolutions.join()}`
  const known = cache.get(key)
  if (known) return known
  const document = z.toJSONSchema(generationRequests[operationOf(task)], { io: 'input' }) as unknown as {
    $schema: string
    $defs: Record<string, Schema>
  }
  const schema = Object.values(document.$defs)[0]!
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [name, simple(property)]),
  )
  if (properties.resolution) properties.resolution.enum = [...resolutions]
  const schemaOfTask = { $schema: document.$schema, ...schema, properties }
  cache.set(key, schemaOfTask)
  return schemaOfTask
}

/** Removes null, which always means absent, and the largest safe integer as a maximum: neither helps a form. */
function simple(property: Schema): Schema {
  const { anyOf, ...rest } = property
  const variants = anyOf?.filter(one => one.type !== 'null')
  const plain: Schema =
    variants?.length === 1 ? { ...variants[0], ...rest } : variants ? { ...rest, anyOf: variants } : rest
  if (Array.isArray(plain.type)) plain.type = plain.type.find(one => one !== 'null')
  if (plain.maximum === Number.MAX_SAFE_INTEGER) delete plain.maximum
  return plain
}
