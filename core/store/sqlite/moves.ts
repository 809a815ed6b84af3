import type { Moves } from '../workflows.ts'

const none = (): Moves => ({ released: [], handedOn: [], withdrawn: [], executions: [] })

/**
 * What the commands of a transaction mean for others than their callers: jobs that are to be queued or stopped because
 * another one has ended. Told once it is committed, and forgotten when it is undone.
 */
export function openMoves() {
  let moves = none()

  return {
    release: (job: Moves['released'][number]): void => void moves.released.push(job),
    /** How many have been released so far. */
    releases: (): number => moves.released.length,
    /** The first that was released since then for this model and needs no look before it runs: it is not to be queued. */
    takeBack(since: number, modelId: string): Moves['released'][number] | undefined {
      const at = moves.released.findIndex((job, place) => place >= since && job.modelId === modelId && job.direct)
      return at < 0 ? undefined : moves.released.splice(at, 1)[0]
    },
    hand: (job: Moves['handedOn'][number]): void => void moves.handedOn.push(job),
    withdraw: (job: Moves['withdrawn'][number]): void => void moves.withdrawn.push(job),
    change: (execution: Moves['executions'][number]): void => void moves.executions.push(execution),
    /** What was moved so far, to come back to when what follows is undone. */
    mark(): () => void {
      const { released, handedOn, withdrawn, executions } = moves
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
      moves = none()
    },
    /** The transaction is committed. Undefined when nothing moved. */
    take(): Moves | undefined {
      if (Object.values(moves).every(({ length }) => length === 0)) return undefined
      const taken = moves
      moves = none()
      return taken
    },
  }
}
export type MovesOfGroup = ReturnType<typeof openMoves>
