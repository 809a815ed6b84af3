/**
 * Runs works one after another, in the order they came. A Vulkan driver may end the process when two contexts compute
 * at once; node-llama-cpp keeps its own apart, and this keeps them apart from the batches that we compose ourselves.
 */
export function openTurns() {
  let last: Promise<unknown> = Promise.resolve()
  return function turn<T>(work: () => Promise<T>): Promise<T> {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}

/** For machines where nobody needs to wait. */
export const noTurns: Turn = work => work()

export type Turn = <T>(work: () => Promise<T>) => Promise<T>
