import { Worker } from 'node:worker_threads'
import { workerPath } from '../../assets.ts'

/** The first message to a thread of this folder: its role. */
export type ThreadStart =
  | {
      /** `server` repairs and checks before it writes; `admin` writes beside a server that has done so. */
      role: 'server' | 'admin'
      dataDir: string
      boot: string
      /** Whether there has been a database here before. */
      created: boolean
      /** Whether the structure was checked just before, so that it is not checked again. */
      checked?: boolean
    }
  /** Prepares what the role `server`, which follows with the same `boot`, needs of a database that another server still writes. */
  | { role: 'prepare'; dataDir: string; boot: string }
  | { role: 'copy'; from: string; to: string }
  | { role: 'reads'; dataDir: string }

/**
 * Starts a thread of the store that waits for its first message (`ThreadStart`). Starting takes a tenth of a second,
 * during which the rest of the program loads. Until that message it does not keep the process alive.
 */
export function startThread(name: 'store-writer' | 'store-copy' | 'store-reads' = 'store-writer'): Worker {
  const thread = new Worker(workerPath('store-writer'), { name })
  thread.unref()
  return thread
}
