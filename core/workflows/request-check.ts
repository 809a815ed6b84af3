import { z } from 'zod'

/**
 * Compiling a schema pays only after thousands of values; a workflow has a few hundred, and the first must not wait.
 */
const withoutCompiling = { jitless: true }

/**
 * The schema's error for a request, or undefined. The fast path checks only the fields that the request has, because a
 * request typically has four of the thirty fields that a task knows. If that fails, the whole request is checked to get
 * the complete error.
 */
export function checkRequest(schema: z.ZodType, request: Readonly<Record<string, unknown>>): z.ZodError | undefined {
  return areFieldsValid(schema, request) ? undefined : schema.safeParse(request).error
}

const required = new WeakMap<z.core.$ZodObject, readonly string[]>()

function areFieldsValid(schema: z.ZodType, request: Readonly<Record<string, unknown>>): boolean {
  if (!(schema instanceof z.ZodObject)) return false
  const { shape, catchall, checks } = schema.def
  // Such a schema has rules for the whole object, or for fields that it does not name.
  if (catchall !== undefined || (checks !== undefined && checks.length > 0)) return false
  let needed = required.get(schema)
  if (!needed) {
    needed = Object.keys(shape).filter(name => shape[name]!._zod.optin === undefined)
    required.set(schema, needed)
  }
  for (const name of needed) if (!Object.hasOwn(request, name)) return false
  for (const name of Object.keys(request)) {
    if (!Object.hasOwn(shape, name)) continue
    if (!z.core.safeParse(shape[name], request[name], withoutCompiling).success) return false
  }
  return true
}
