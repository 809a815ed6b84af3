import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'

/** As long as one process remembers a verified secret, milliseconds. */
const everyMs = 50

/**
 * Calls `changed` soon after another process, such as the command line, has changed organizations, users or tokens. Returns the
 * function that ends this.
 */
export function followAccountChanges({
  audit,
  changed,
  log,
}: {
  audit: Pick<Store['audit'], 'accountsChanged'>
  changed: () => Promise<void>
  log: Log
}): () => void {
  let newest: number | undefined
  let reading = false

  async function look(): Promise<void> {
    if (reading) return
    reading = true
    try {
      const now = await audit.accountsChanged(newest ?? Number.MAX_SAFE_INTEGER)
      // What changed before the first look is not known.
      const isFirst = newest === undefined
      newest = now.newest
      if (now.changed || isFirst) await changed()
    } catch (thrown) {
      log.warn('Changes of tokens by other processes could not be read', {}, thrown)
    } finally {
      reading = false
    }
  }
  const timer = setInterval(() => void look(), everyMs).unref()
  return () => clearInterval(timer)
}
