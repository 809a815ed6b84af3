/** Runs work while no other work under the same mutex is running. */
export type Exclusive = <T>(work: () => Promise<T>) => Promise<T>

/**
 * Opens a mutex that runs work in order of arrival. A Vulkan driver may crash the process if two contexts compute at
 * once. node-llama-cpp serializes its own computations; this mutex also serializes the batches composed by the engine.
 */
export function openMutex(): Exclusive {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const mine = last.then(work)
    last = mine.catch(() => {})
    return mine
  }
}

/** For backends that allow concurrent computation. */
export const noMutex: Exclusive = work => work()
