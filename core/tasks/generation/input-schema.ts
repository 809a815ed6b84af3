import { z } from 'zod'
import type { Resolution } from '../../schemas/resolution.ts'
import type { GenerationTask } from '../../schemas/task.ts'
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

const made = new Map<string, object>()

/** What a request for the task may hold, as a JSON Schema (2020-12) that stands alone: for forms and for workflows. */
export function inputSchema(task: GenerationTask, resolutions: readonly Resolution[] = defaultResolutions): object {
  const key = `${task} ${resolutions.join()}`
  const known = made.get(key)
  if (known) return known
  const whole = z.toJSONSchema(generationRequests[task], { io: 'input' }) as unknown as {
    $schema: string
    $defs: Record<string, Schema>
  }
  const schema = Object.values(whole.$defs)[0]!
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [name, simple(property)]),
  )
  if (properties.resolution) properties.resolution.enum = [...resolutions]
  const alone = { $schema: whole.$schema, ...schema, properties }
  made.set(key, alone)
  return alone
}

/** Null means absent everywhere here, and the bounds of JavaScript's whole numbers say nothing: neither helps a form. */
function simple(property: Schema): Schema {
  const { anyOf, ...rest } = property
  const given = anyOf?.filter(one => one.type !== 'null')
  const plain: Schema = given?.length === 1 ? { ...given[0], ...rest } : given ? { ...rest, anyOf: given } : rest
  if (Array.isArray(plain.type)) plain.type = plain.type.find(one => one !== 'null')
  if (plain.maximum === Number.MAX_SAFE_INTEGER) delete plain.maximum
  return plain
}
