import { readFileSync } from 'node:fs'
import type { Done, ThreadWork } from '../cpu/thread-work.ts'
import { jsonType } from '../schemas/schema-walk.ts'
import type { Task } from '../schemas/task.ts'
import { resultExpired } from '../store/large-result.ts'
import { shownResult } from '../tasks/registry.ts'
import { insertedText, type LargeValue, maxText, resolve, Unresolved } from './bind.ts'
import { prune } from './prune.ts'
import { parseReference } from './references.ts'

/** A reference into the result of a node, and whether its value is needed as it is or as text. */
export interface LargeReference {
  source: string
  whole: boolean
}

export interface FoundValues {
  /** By the source of the reference. */
  found: Map<string, LargeValue>
  /** Approximate size of all values together, bytes of JSON. */
  bytes: number
}

/** A part of a list: its items from a position on, at least one unless the list ends there. */
export interface ListSlice {
  /** The number of items of the whole list. */
  count: number
  from: number
  items: unknown[]
}

/** About how many bytes of JSON a slice of a list has, and the most items. */
const sliceBytes = 1 << 17
const sliceItems = 1_000

/** Thread work on large results of nodes. */
export const resultWork = {
  /** The values of references into a result of a task; its files are named by id. */
  referredIn(options: {
    path: string
    nodeId: string
    references: readonly LargeReference[]
    task: Task
  }): Done<FoundValues> {
    const { path, nodeId, references, task } = options
    const result = shownResult(task, readResult(path), ({ id }) => id)
    const node = { status: 'completed', error: null, result, outputs: result }
    const found = new Map<string, LargeValue>()
    let bytes = 0
    for (const { source, whole } of references) {
      try {
        const value = resolve(parseReference(source), { input: {}, nodes: { [nodeId]: node }, execution: {} })
        // A text over the limit is cut: it only needs to be found too long.
        const text = insertedText(value).slice(0, whole ? undefined : maxText + 1)
        bytes += text.length
        found.set(source, { value: whole ? value : text })
      } catch (thrown) {
        if (!(thrown instanceof Unresolved)) throw thrown
        found.set(source, { missing: thrown.message })
      }
    }
    return { value: { found, bytes } }
  },
  /**
   * The items of a list in a result of a task, from a position on; `kind` if it is no list, `missing` if it does not
   * exist.
   */
  listIn(options: {
    path: string
    nodeId: string
    source: string
    from: number
    task: Task
  }): Done<ListSlice | { kind: string } | { missing: string }> {
    const { path, nodeId, source, from, task } = options
    const result = shownResult(task, readResult(path), ({ id }) => id)
    const nodes = { [nodeId]: { status: 'completed', error: null, result, outputs: result } }
    let list: unknown
    try {
      list = resolve(parseReference(source), { input: {}, nodes, execution: {} })
    } catch (thrown) {
      if (!(thrown instanceof Unresolved)) throw thrown
      return { value: { missing: thrown.message } }
    }
    if (!Array.isArray(list)) return { value: { kind: jsonType(list) } }
    let end = from
    for (let bytes = 0; end < list.length && bytes < sliceBytes && end - from < sliceItems; end++)
      bytes += JSON.stringify(list[end]).length
    return { value: { count: list.length, from, items: list.slice(from, end) } }
  },
  /** The part of a result that a node keeps, as JSON in UTF-8: `{result, values}`, or the result alone. */
  prunedResult(options: { path: string; outputs: readonly string[]; what: 'kept' | 'result' }): Done<Uint8Array> {
    const { path, outputs, what } = options
    const kept = prune(readResult(path), outputs)
    const json = new TextEncoder().encode(JSON.stringify(what === 'kept' ? kept : kept.result))
    return { value: json, give: [json] }
  },
} satisfies ThreadWork

/**
 * The result that was read last, because all successors of a node start at once. Result files never change, and the
 * thread that caches it ends after half a minute without work.
 */
let last: { path: string; value: unknown } | undefined

function readResult(path: string): unknown {
  if (last?.path !== path) last = { path, value: parsed(path) }
  return last.value
}

function parsed(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw (cause as NodeJS.ErrnoException).code === 'ENOENT' ? resultExpired() : cause
  }
}
