import { StoreRefusal } from '../refusal.ts'
import type { FromCopy, ThreadStart } from './protocol.ts'
import { startThread } from './thread.ts'

/**
 * Runs `copyDatabase` in its own thread: neither the event loop nor the writer waits for its reads, writes and final
 * fsync. Rejects with StoreRefusal.
 */
export function copyInThread(
  from: string,
  to: string,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<{ bytes: number }> {
  return new Promise((resolve, reject) => {
    const thread = startThread('store-copy')
    thread.ref()
    thread.postMessage({ role: 'copy', from, to } satisfies ThreadStart, [])
    thread
      .on('message', (message: FromCopy) => {
        if (message.kind === 'progress') onProgress(message.done, message.total)
        else if (message.kind === 'copied') resolve({ bytes: message.bytes })
        else reject(new StoreRefusal(message.exitCode, message.message))
      })
      .on('error', thrown => reject(new StoreRefusal(74, `The backup to ${to} failed: ${String(thrown)}.`, thrown)))
      .on('exit', () => reject(new StoreRefusal(74, `The backup to ${to} was not finished.`)))
  })
}
