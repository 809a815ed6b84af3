import type { CommitEffects } from '../workflows.ts'

const none = (): CommitEffects => ({ released: [], claimedSuccessors: [], withdrawn: [], executions: [] })

/**
 * Collects the effects of a transaction on others than its callers: jobs to queue or stop because another job has
 * ended. Announced after the commit, dropped on rollback.
 */
export function openCommitEffects() {
  let effects = none()

  return {
    release: (job: CommitEffects['released'][number]): void => void effects.released.push(job),
    claimSuccessor: (job: CommitEffects['claimedSuccessors'][number]): void => void effects.claimedSuccessors.push(job),
    withdraw: (job: CommitEffects['withdrawn'][number]): void => void effects.withdrawn.push(job),
    change: (execution: CommitEffects['executions'][number]): void => void effects.executions.push(execution),
    /** Returns a function that reverts to this point when later commands are rolled back. */
    mark(): () => void {
      const { released, claimedSuccessors, withdrawn, executions } = effects
      const lengths = [released.length, claimedSuccessors.length, withdrawn.length, executions.length] as const
      return () => {
        released.length = lengths[0]
        claimedSuccessors.length = lengths[1]
        withdrawn.length = lengths[2]
        executions.length = lengths[3]
      }
    },
    /** Call it when the transaction was rolled back. */
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
