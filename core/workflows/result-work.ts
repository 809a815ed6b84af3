import { readFileSync } from 'node:fs'
import type { Done, ThreadWork } from '../cpu/thread-work.ts'
import type { Task } from '../schemas/task.ts'
import { resultExpired } from '../store/large-result.ts'
import { shownResult } from '../tasks/registry.ts'
import { type LargeValue, look, maxText, Unresolved, written } from './bind.ts'
import { prune } from './prune.ts'
import { parseReference } from './references.ts'

/** A reference into the result of a node, and whether its value is wanted as it is or as text. */
export interface LargeReference {
  source: string
  whole: boolean
}

export interface FoundValues {
  /** By the source of the reference. */
  found: Map<string, LargeValue>
  /** About how large the values are together, bytes of JSON. */
  bytes: number
}

/** Thread work on large results of nodes. */
export const resultWork = {
  /** The values of references into a result of a task; its files are named by their ids. */
  referredIn({
    path,
    nodeId,
    references,
    task,
  }: {
    path: string
    nodeId: string
    references: readonly LargeReference[]
    task: Task
  }): Done<FoundValues> {
    const result = shownResult(task, readResult(path), ({ id }) => id)
    const node = { status: 'completed', error: null, result, outputs: result }
    const found = new Map<string, LargeValue>()
    let bytes = 0
    for (const { source, whole } of references) {
      try {
        const value = look(parseReference(source), { input: {}, nodes: { [nodeId]: node }, execution: {} })
        // Of a text that is too long it is enough to see that it is.
        const text = written(value).slice(0, whole ? undefined : maxText + 1)
        bytes += text.length
        found.set(source, { value: whole ? value : text })
      } catch (thrown) {
        if (!(thrown instanceof Unresolved)) throw thrown
        found.set(source, { missing: thrown.message })
      }
    }
    return { value: { found, bytes } }
  },
  /** What a node keeps of a result, as JSON in UTF-8: `{result, values}`, or the result alone. */
  prunedResult({
    path,
    outputs,
    what,
  }: {
    path: string
    outputs: readonly string[]
    what: 'kept' | 'result'
  }): Done<Uint8Array> {
    const kept = prune(readResult(path), outputs)
    const json = new TextEncoder().encode(JSON.stringify(what === 'kept' ? kept : kept.result))
    return { value: json, give: [json] }
  },
} satisfies ThreadWork

/**
 * The result that was read last: what comes after a node comes all at once. Files of results never change, and the
 * thread that remembers it ends when it has had nothing to do for half a minute.
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
