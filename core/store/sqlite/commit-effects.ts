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

/**
 * Collects the effects of a transaction on others than its callers: jobs to queue or stop because another job has
 * ended. Announced after the commit, dropped on rollback.
 */
export function openCommitEffects() {
  let effects = none()

  return {
    add<Kind extends keyof CommitEffects>(kind: Kind, effect: CommitEffects[Kind][number]): void {
      const list: CommitEffects[Kind][number][] = effects[kind]
      list.push(effect)
    },
    mark(): () => void {
      const lists = Object.values(effects) as unknown[][]
      const lengths = lists.map(({ length }) => length)
      return () => {
        for (const [at, list] of lists.entries()) list.length = lengths[at]!
      }
    },
    forget(): void {
      effects = none()
    },
    /** Call it after the commit. Undefined if there are none. */
    take(): CommitEffects | undefined {
      if (Object.values(effects).every(({ length }) => length === 0)) return undefined
      const taken = effects
      effects = none()
      return taken
    },
  }
}
export type GroupEffects = ReturnType<typeof openCommitEffects>
