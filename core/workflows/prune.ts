import { outputPath } from './output-path.ts'
import type { Segment } from './references.ts'

/** What of a result a node keeps: the parts that its `outputs` name, in their places, and each by its path. */
export interface KeptResult {
  result: unknown
  values: Record<string, unknown>
}

/**
 * Cuts a result down to what the paths name. Objects keep the members on the way, lists keep their length up to the
 * last place that is named, with null where nothing is. Without paths it is kept whole. A path that leads nowhere has
 * the value null.
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

function reach(value: unknown, path: readonly Segment[]): unknown {
  let now = value
  for (const step of path) {
    if (now === null || typeof now !== 'object' || !Object.hasOwn(now, step)) return undefined
    if (Array.isArray(now) && typeof step !== 'number') return undefined
    now = (now as Record<Segment, unknown>)[step]
  }
  return now
}

/** What is kept so far, with one more value in the place that it has in the result. */
function graft(kept: unknown, result: unknown, path: readonly Segment[], value: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return value
  const inner = (result as Record<Segment, unknown>)[step]
  if (Array.isArray(result)) {
    const list = Array.isArray(kept) ? kept : []
    while (list.length <= Number(step)) list.push(null)
    list[Number(step)] = graft(list[Number(step)] ?? undefined, inner, rest, value)
    return list
  }
  const object = (kept ?? {}) as Record<string, unknown>
  return { ...object, [step]: graft(object[step], inner, rest, value) }
}
