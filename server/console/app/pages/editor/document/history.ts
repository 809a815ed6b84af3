/** The texts of a document before and after the present one. Undo and redo are the same for the graph and the YAML. */
export interface History {
  past: readonly string[]
  present: string
  future: readonly string[]
  /** Changes of the same group that follow each other closely are one step: letters of a word. */
  group: string | undefined
  at: number
}

const maxSteps = 200
const groupMs = 1_000

export const openHistory = (
  present: string,
  past: readonly string[] = [],
  future: readonly string[] = [],
): History => ({ past, present, future, group: undefined, at: 0 })

/** Adds a change. `now` in milliseconds. */
export function changed(history: History, present: string, now: number, group?: string): History {
  if (present === history.present) return history
  const same = group !== undefined && group === history.group && now - history.at < groupMs
  const past = same ? history.past : [...history.past.slice(1 - maxSteps), history.present]
  return { past, present, future: [], group, at: now }
}

export function undone(history: History): History {
  const before = history.past.at(-1)
  if (before === undefined) return history
  return openHistory(before, history.past.slice(0, -1), [history.present, ...history.future])
}

export function redone(history: History): History {
  const [next, ...future] = history.future
  if (next === undefined) return history
  return openHistory(next, [...history.past, history.present], future)
}
