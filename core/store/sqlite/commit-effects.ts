import type { CommitEffects } from '../workflows.ts'

const none = (): CommitEffects => ({ released: [], handedOn: [], withdrawn: [], executions: [] })

/**
 * What the commands of a transaction mean for others than their callers: jobs that are to be queued or stopped because
 * another one has ended. Told once it is committed, and forgotten when it is undone.
 */
export function openCommitEffects() {
  let effects = none()

  return {
    release: (job: CommitEffects['released'][number]): void => void effects.released.push(job),
    hand: (job: CommitEffects['handedOn'][number]): void => void effects.handedOn.push(job),
    withdraw: (job: CommitEffects['withdrawn'][number]): void => void effects.withdrawn.push(job),
    change: (execution: CommitEffects['executions'][number]): void => void effects.executions.push(execution),
    /** What was moved so far, to come back to when what follows is undone. */
    mark(): () => void {
      const { released, handedOn, withdrawn, executions } = effects
      const lengths = [released.length, handedOn.length, withdrawn.length, executions.length] as const
      return () => {
        released.length = lengths[0]
        handedOn.length = lengths[1]
        withdrawn.length = lengths[2]
        executions.length = lengths[3]
      }
    },
    /** The transaction was undone. */
    forget(): void {
      effects = none()
    },
    /** The transaction is committed. Undefined when nothing moved. */
    take(): CommitEffects | undefined {
      if (Object.values(effects).every(({ length }) => length === 0)) return undefined
      const taken = effects
      effects = none()
      return taken
    },
  }
}
export type GroupEffects = ReturnType<typeof openCommitEffects>
