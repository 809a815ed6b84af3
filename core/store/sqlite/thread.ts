import { Worker } from 'node:worker_threads'
import { workerPath } from '../../assets.ts'

/**
 * A thread of the store that waits to be told what to do (`ThreadStart`). It takes a tenth of a second to come up, in
 * which others can go on: the rest of the program is read meanwhile. Until it is told, it keeps no process from ending.
 */
export function startThread(name: 'store-writer' | 'store-copy' = 'store-writer'): Worker {
  const thread = new Worker(workerPath('store-writer'), { name })
  thread.unref()
  return thread
}
