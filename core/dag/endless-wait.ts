/** The unfinished executions of an organization, by number. */
export interface UnfinishedExecutions {
  /** How many executions of the workflow may run at once; null: any number. */
  limitOf: (workflowId: string) => number | null
  /** The executions of the workflow that do not wait for others of it. */
  startedOf: (workflowId: string) => readonly number[]
  /** The executions that nodes of this one run. */
  nestedIn: (execution: number) => readonly NestedExecution[]
}
interface NestedExecution {
  number: number
  workflowId: string | null
  /** Whether it waits for others of its workflow. */
  queued: boolean
}

/** How many executions are looked at. With more the answer may be that one can start although it cannot. */
const maxLookedAt = 1_000

/**
 * Whether a nested execution of the workflow can never start, because so many others of the workflow as may run at once wait
 * for an end of those around it, in `around`. Returns the workflows for whose executions they wait; undefined: it can start
 * some day.
 */
export function endlessWait(
  workflowId: string,
  around: ReadonlySet<number>,
  { limitOf, startedOf, nestedIn }: UnfinishedExecutions,
): string[] | undefined {
  let left = maxLookedAt

  /** `path`: the workflows whose executions wait for this one's. */
  function waitOf(workflow: string, path: readonly string[]): string[] | undefined {
    if (path.includes(workflow)) return []
    const limit = limitOf(workflow)
    if (limit === null) return undefined
    const started = startedOf(workflow)
    if (started.length < limit) return undefined
    let canEnd = 0
    let first: string[] | undefined
    for (const number of started) {
      const awaited = blockOf(number, [...path, workflow])
      if (awaited) first ??= awaited
      // More nested ones than the limit may run, because those within others of their workflow start at once.
      else if (++canEnd > started.length - limit) return undefined
    }
    return first
  }

  /** Why an execution cannot end: the workflows that it waits for. */
  function blockOf(number: number, path: readonly string[]): string[] | undefined {
    if (around.has(number)) return []
    if (left-- <= 0) return undefined
    for (const one of nestedIn(number)) {
      const { workflowId: own } = one
      const wait = one.queued ? own !== null && waitOf(own, path) : blockOf(one.number, path)
      if (wait) return one.queued ? [own!, ...wait] : wait
    }
    return undefined
  }

  return waitOf(workflowId, [])
}
