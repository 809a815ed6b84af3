import { everyItem, parseReference, type ReferenceStep } from './references.ts'

/** Parses a path of a node's `outputs`, which may begin with `result.` or `[`; undefined if it is invalid. */
export function outputPath(text: string): readonly ReferenceStep[] | undefined {
  try {
    const { path } = parseReference(text.startsWith('[') ? `nodes${text}` : `nodes.${text}`)
    return path[0] === 'result' && path.length > 1 ? path.slice(1) : path
  } catch {
    return undefined
  }
}

/**
 * The part of a result that a node keeps: the members that its `outputs` name, in their positions, and each by its
 * path.
 */
export interface KeptResult {
  result: unknown
  values: Record<string, unknown>
}

/**
 * Reduces a result to the paths. Objects keep the members on a path; lists keep their length up to the last position on
 * a path, with null elsewhere; for a path with `[*]`, all of their items. Without paths the whole result is kept. A path
 * that does not exist has the value null.
 */
export function prune(result: unknown, outputs: readonly string[]): KeptResult {
  if (outputs.length === 0) return { result, values: {} }
  const values: Record<string, unknown> = {}
  let kept: unknown
  for (const text of outputs) {
    const path = outputPath(text) ?? []
    const value = path.length > 0 ? reach(result, path) : undefined
    values[text] = value ?? null
    if (value !== undefined) kept = graft(kept, result, path, value)
  }
  return { result: kept ?? null, values }
}

/** The value at a path; undefined if there is none. Reads own members only. */
export function reach(value: unknown, path: readonly ReferenceStep[]): unknown {
  let now = value
  for (const [at, step] of path.entries()) {
    if (step === everyItem)
      return Array.isArray(now) ? now.map((item: unknown) => reach(item, path.slice(at + 1)) ?? null) : undefined
    if (now === null || typeof now !== 'object' || !Object.hasOwn(now, step)) return undefined
    if (Array.isArray(now) && typeof step !== 'number') return undefined
    now = (now as Record<ReferenceStep, unknown>)[step]
  }
  return now
}

/** Adds one more value to the kept part, at its position in the result. */
function graft(kept: unknown, result: unknown, path: readonly ReferenceStep[], value: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return value
  if (step === everyItem) {
    const list: unknown[] = Array.isArray(kept) ? kept : []
    return (result as unknown[]).map((item, at) => {
      const before = list[at] ?? undefined
      const own = reach(item, rest)
      return own === undefined ? (before ?? null) : graft(before, item, rest, own)
    })
  }
  const inner = (result as Record<ReferenceStep, unknown>)[step]
  if (Array.isArray(result)) {
    const list = Array.isArray(kept) ? kept : []
    while (list.length <= Number(step)) list.push(null)
    list[Number(step)] = graft(list[Number(step)] ?? undefined, inner, rest, value)
    return list
  }
  const object = (kept ?? {}) as Record<string, unknown>
  return { ...object, [step]: graft(object[step], inner, rest, value) }
}
