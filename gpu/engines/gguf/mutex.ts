/** Runs work when no other work under the same mutex is running. */
export type Exclusive = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Opens a mutex: works run one after another, in the order in which they came. A Vulkan driver may end the process when
 * two contexts compute at once; node-llama-cpp keeps its own apart, and this keeps them apart from the batches that we
 * compose ourselves.
 */
export function openMutex(): Exclusive {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}

/** For machines where works may run at the same time. */
export const noMutex: Exclusive = work => work()
