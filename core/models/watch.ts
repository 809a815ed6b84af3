import { unwatchFile, watchFile } from 'node:fs'

/** How often the file is checked, milliseconds. */
const intervalMs = 200

/**
 * Calls `changed` when a file has changed, `settleMs` milliseconds after its last change, so that a file that is written
 * in pieces is not read too early. It watches the path and not the file behind it, because editors and atomic writes
 * replace the file, and Kubernetes replaces a link in its path.
 *
 * It polls five times a second and does not use inotify, for three reasons. infer.yaml is in the folder of the database,
 * whose every write would wake the event loop (17 µs each; with 3,000 a second, 5 % of a processor was measured). Network
 * file systems and files mounted into containers send no events. The number of inotify watches of a user is limited.
 */
export function watchPath({ path, settleMs, changed }: { path: string; settleMs: number; changed: () => void }): {
  close(): void
} {
  let timer: NodeJS.Timeout | undefined
  const onChange = () => {
    clearTimeout(timer)
    timer = setTimeout(changed, settleMs)
  }
  watchFile(path, { interval: intervalMs, persistent: false }, onChange)
  return {
    close() {
      clearTimeout(timer)
      unwatchFile(path, onChange)
    },
  }
}
