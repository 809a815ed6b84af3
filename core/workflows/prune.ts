import { outputPath } from './output-path.ts'
import type { ReferenceStep } from './references.ts'

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
 * a path, with null elsewhere. Without paths the whole result is kept. A path that does not exist has the value null.
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

function reach(value: unknown, path: readonly ReferenceStep[]): unknown {
  let now = value
  for (const step of path) {
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
