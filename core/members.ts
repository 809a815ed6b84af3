/** Returns an object without its members that are null or undefined. */
export const presentMembers = (members: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null && value !== undefined))

/** Returns an object without its members that are undefined, for options that distinguish the two. */
export const definedMembers = <T extends object>(members: T) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>
type Defined<T> = { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> } & {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K]
}

/**
 * Returns an object with these members of another one, such as the methods of an owner that its users may call. Each is
 * read now, and methods lose their `this`.
 */
export const pick = <Of, Name extends keyof Of>(from: Of, ...names: Name[]): Pick<Of, Name> =>
  Object.fromEntries(names.map(name => [name, from[name]])) as Pick<Of, Name>

/** Returns an object with the same names and other values. */
export const mapMembers = <Name extends string, Value, Other>(
  from: Readonly<Record<Name, Value>>,
  convert: (value: Value, name: Name) => Other,
) =>
  Object.fromEntries(
    (Object.entries(from) as [Name, Value][]).map(([name, value]) => [name, convert(value, name)]),
  ) as Record<Name, Other>
