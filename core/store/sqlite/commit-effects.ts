import type { CommitEffects } from '../workflows.ts'

const none = (): CommitEffects => ({
  released: [],
  claimedSuccessors: [],
  withdrawn: [],
  executions: [],
  deliveries: [],
  organizations: [],
  batches: [],
})

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
    deliver: (target: string): void => void effects.deliveries.push(target),
    /** The organization has an event of its own. */
    eventOf: (organizationId: string): void => void effects.organizations.push(organizationId),
    /** A batch has changed. */
    moveBatch: (batch: CommitEffects['batches'][number]): void => void effects.batches.push(batch),
    change: (execution: CommitEffects['executions'][number]): void => void effects.executions.push(execution),
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
