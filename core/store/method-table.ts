import type { Failure } from '../failure.ts'
import type { StoreMethods } from './store.ts'

/** The methods of the store, as `jobs.find`. */
export type MethodName = {
  [Group in keyof StoreMethods]: `${Group}.${keyof StoreMethods[Group] & string}`
}[keyof StoreMethods]

type Method<Name extends MethodName> = Name extends `${infer Group extends keyof StoreMethods}.${infer Own}`
  ? Own extends keyof StoreMethods[Group]
    ? StoreMethods[Group][Own]
    : never
  : never

/** A function for each method of the store: all that an implementation supplies for them. */
type MethodTable = { [Name in MethodName]: Method<Name> }

/**
 * For each method the function that runs its statements, with the arguments of the method; the transaction is its
 * caller's. A Failure that it throws undoes what it has changed. One that it returns has changed nothing, and is
 * cheaper.
 */
export type Statements = {
  [Name in MethodName]?: (
    ...given: Parameters<Method<Name>>
  ) => Awaited<ReturnType<Method<Name>>> | StatementFailure<Name>
}
type StatementFailure<Name extends MethodName> = Name extends SynchronousMethod ? never : Failure

/** Methods that answer at once: every request starts with them. */
export const synchronousMethods = ['tokens.verify', 'tokens.verifyId', 'sessions.find'] as const satisfies MethodName[]
type SynchronousMethod = (typeof synchronousMethods)[number]

/**
 * The methods of the store by their groups: `jobs.find` becomes `store.jobs.find`. `methodOf` makes those of the given
 * names from their statements; `own` are the others, and must be all of them.
 */
export function groupMethods<Name extends MethodName>(
  names: readonly Name[],
  methodOf: (name: Name) => (...given: never[]) => unknown,
  own: Omit<MethodTable, Name> & Partial<MethodTable>,
): StoreMethods {
  const groups: Record<string, Record<string, unknown>> = {}
  const made = names.map(name => [name, methodOf(name)] as const)
  for (const [name, method] of [...made, ...Object.entries(own)]) {
    const [group, member] = name.split('.') as [string, string]
    groups[group] ??= {}
    groups[group][member] = method
  }
  // Names are strings here; their statements were checked where the tables are put together.
  return groups as unknown as StoreMethods
}
