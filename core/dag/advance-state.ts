import { advance, type ExecutionInput, type ExecutionWrite } from './advance.ts'
import { applyWrites, type ExecutionPlan, type ExecutionState } from './execution-state.ts'

/**
 * Moves an execution on: returns what follows from an event, as `advance` does, and applies it to the state. Its time limit
 * stops while it only waits, and goes on with what is left of it.
 */
export function advanceState(plan: ExecutionPlan, state: ExecutionState, input: ExecutionInput): ExecutionWrite[] {
  const writes = advance(plan, state, input)
  applyWrites(plan, state, writes, input.at)
  const clock = clockWrites(state, input.at)
  applyWrites(plan, state, clock, input.at)
  return [...writes, ...clock]
}

function clockWrites(state: ExecutionState, at: number): ExecutionWrite[] {
  const { timeoutAt, remainingMs } = state.clock
  const waits = onlyWaits(state)
  if (remainingMs !== null && !waits)
    return [{ write: 'clock', clock: { timeoutAt: at + remainingMs, remainingMs: null } }]
  // One that is over times out.
  if (timeoutAt === null || timeoutAt <= at || !waits) return []
  return [{ write: 'clock', clock: { timeoutAt: null, remainingMs: timeoutAt - at } }]
}

/** Whether nothing of an execution is queued or runs, because all that has begun waits for something outside of it. */
const onlyWaits = ({ begun, atWork }: ExecutionState): boolean => begun > 0 && atWork === 0
