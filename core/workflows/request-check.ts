import { z } from 'zod'

/** Code made for a schema pays after thousands of values; a workflow has a few hundred, and the first must not wait. */
const asItIs = { jitless: true }

/**
 * What a schema says of a request. A request that is right is mostly found out by the fields that it has: of thirty
 * that a task knows it names four, and those that are absent need not be asked one by one. Whatever is not right that
 * way is checked in whole, for what is to be said of it.
 */
export function checkRequest(schema: z.ZodType, request: Readonly<Record<string, unknown>>): z.ZodError | undefined {
  return isRightByFields(schema, request) ? undefined : schema.safeParse(request).error
}

const required = new WeakMap<z.core.$ZodObject, readonly string[]>()

function isRightByFields(schema: z.ZodType, request: Readonly<Record<string, unknown>>): boolean {
  if (!(schema instanceof z.ZodObject)) return false
  const { shape, catchall, checks } = schema.def
  // Then it says something of the whole, or of members that it does not name.
  if (catchall !== undefined || (checks !== undefined && checks.length > 0)) return false
  let needed = required.get(schema)
  if (!needed) {
    needed = Object.keys(shape).filter(name => shape[name]!._zod.optin === undefined)
    required.set(schema, needed)
  }
  for (const name of needed) if (!Object.hasOwn(request, name)) return false
  for (const name of Object.keys(request)) {
    if (!Object.hasOwn(shape, name)) continue
    if (!z.core.safeParse(shape[name], request[name], asItIs).success) return false
  }
  return true
}
