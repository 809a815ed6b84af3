import type { CommitEffects } from '../workflows.ts'

const none = (): CommitEffects => ({
  released: [],
  claimedSuccessors: [],
  gathers: [],
  withdrawn: [],
  setAside: [],
  executions: [],
  nestedEnded: [],
  deliveries: [],
  organizations: [],
  batches: [],
  givenUp: [],
})

/** The change of an execution; `next` is called after the commit, and only if the execution has not ended. */
type ExecutionChange = Omit<CommitEffects['executions'][number], 'next'> & { next: () => readonly string[] }

/**
 * Collects the effects of a transaction on others than its callers: jobs to queue or stop because another job has
 * ended. Announced after the commit, dropped on rollback.
 */
export function openCommitEffects() {
  let effects = none()
  /** By id: one commit may change many nodes of an execution, and what is next is found by looking at all of them. */
  const executions = new Map<string, ExecutionChange>()
  /** What each change has replaced, in their order: a mark is a place in it, and costs nothing. */
  const replaced: [id: string, before: ExecutionChange | undefined][] = []

  function clearExecutions(): void {
    executions.clear()
    replaced.length = 0
  }

  return {
    executionChanged(change: ExecutionChange): void {
      const before = executions.get(change.id)
      const timeoutAt = change.timeoutAt ?? before?.timeoutAt
      replaced.push([change.id, before])
      executions.set(change.id, { ...change, ended: change.ended || before?.ended === true, timeoutAt })
    },
    add<Kind extends Exclude<keyof CommitEffects, 'executions'>>(
      kind: Kind,
      effect: CommitEffects[Kind][number],
    ): void {
      const list: CommitEffects[Kind][number][] = effects[kind]
      list.push(effect)
    },
    mark(): () => void {
      const lists = Object.values(effects) as unknown[][]
      const lengths = lists.map(({ length }) => length)
      const { length } = replaced
      return () => {
        for (const [id, before] of replaced.splice(length).toReversed())
          if (before) executions.set(id, before)
          else executions.delete(id)
        for (const [at, list] of lists.entries()) list.length = lengths[at]!
      }
    },
    forget(): void {
      effects = none()
      clearExecutions()
    },
    /** Call it after the commit. Undefined if there are none. */
    take(): CommitEffects | undefined {
      for (const { next, ...change } of executions.values())
        effects.executions.push({ ...change, next: change.ended ? [] : next() })
      clearExecutions()
      if (Object.values(effects).every(({ length }) => length === 0)) return undefined
      const taken = effects
      effects = none()
      return taken
    },
  }
}
export type GroupEffects = ReturnType<typeof openCommitEffects>
