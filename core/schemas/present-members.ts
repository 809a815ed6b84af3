import { z } from 'zod'

/** Schemas with fewer members are read as they are. */
const minMembers = 12
/** A set of members is a sum of powers of two, which a number holds exactly up to here. */
const maxMembers = 52
/** Sets of members of one schema that are remembered: zod compiles a function for each. */
const maxSets = 64

interface Members {
  /** By name: its power of two in a set. */
  bits: ReadonlyMap<string, number>
  required: ReadonlySet<string>
  schemas: Map<number, z.ZodType>
}

const known = new WeakMap<z.ZodType, Members | null>()

function membersOf(schema: z.ZodType): Members | null {
  const before = known.get(schema)
  if (before !== undefined) return before
  const shape = schema instanceof z.ZodObject ? (schema.shape as z.core.$ZodShape) : {}
  const names = Object.keys(shape)
  // A schema with conditions across its members cannot be reduced.
  const reducible = names.length >= minMembers && names.length <= maxMembers && !schema.def.checks?.length
  const members = reducible
    ? {
        bits: new Map(names.map((name, at) => [name, 2 ** at])),
        required: new Set(names.filter(name => !mayBeAbsent(shape[name]!))),
        schemas: new Map<number, z.ZodType>(),
      }
    : null
  known.set(schema, members)
  return members
}

/** Whether a member that is absent stays absent: one with a default does not. */
function mayBeAbsent(member: z.core.$ZodType): boolean {
  if (member._zod.optin !== 'optional') return false
  const { success, data } = z.safeParse(member, undefined)
  return success && data === undefined
}

/**
 * Returns a schema that reads this value as `schema` does. It lacks the optional members that the value does not have: zod
 * allocates an object for each member of a schema, and requests use few of the fields that there are.
 */
export function schemaForPresent<Schema extends z.ZodType>(schema: Schema, value: unknown): Schema {
  const members = typeof value === 'object' && value !== null ? membersOf(schema) : null
  if (!members) return schema
  let set = 0
  for (const name of Object.keys(value as object)) set += members.bits.get(name) ?? 0
  const { schemas } = members
  let found = schemas.get(set)
  if (!found && schemas.size < maxSets) {
    // In the order of the schema, which is that of its issues.
    const names = [...members.bits.keys()].filter(
      name => members.required.has(name) || Object.hasOwn(value as object, name),
    )
    const picked = Object.fromEntries(names.map(name => [name, true] as const))
    found = z.core.util.pick(schema as unknown as z.ZodObject, picked) as z.ZodType
    schemas.set(set, found)
  }
  // Of the same members in the same order, as far as the value has them.
  return (found ?? schema) as Schema
}
