/** A path in a JSON value: names of members and indexes of lists. */
export type ValuePath = readonly (string | number)[]

/** How deep a path may go, and its length in characters. */
const maxSteps = 32
const maxLength = 512

const step = /(?:^|\.)([A-Za-z_$][A-Za-z0-9_$-]*)|\[([0-9]{1,9})\]|\[("(?:[^"\\]|\\["\\])*")\]/y
/** Never read, even as own members, because they would be dangerous in a prototype. */
const unsafe: ReadonlySet<string | number> = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * Returns the path that a text names, in the form of references of workflows: `choices[0].message["a name"]`; the empty
 * text is the value itself. Undefined if it is none.
 */
export function valuePath(text: string): ValuePath | undefined {
  if (text.length > maxLength) return undefined
  const path: (string | number)[] = []
  for (let at = 0; at < text.length; ) {
    step.lastIndex = at
    const found = step.exec(text)
    if (!found || path.length === maxSteps) return undefined
    const [whole, name, index, quoted] = found
    path.push(name ?? (index === undefined ? (JSON.parse(quoted!) as string) : Number(index)))
    at += whole.length
  }
  return path
}

/** Returns the value at a path; undefined if there is none. Reads own members only. */
export function valueAt(value: unknown, path: ValuePath): unknown {
  let at = value
  for (const one of path) {
    if (at === null || typeof at !== 'object' || unsafe.has(one) || !Object.hasOwn(at, one)) return undefined
    if (Array.isArray(at) && typeof one !== 'number') return undefined
    at = (at as Record<string | number, unknown>)[one]
  }
  return at
}
