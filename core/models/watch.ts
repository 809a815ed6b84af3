import { unwatchFile, watchFile } from 'node:fs'

/** How often the file is looked at. Milliseconds. */
const everyMs = 200

/**
 * Calls back when a file has changed, a moment (`settleMs`) after the last sign of it, so that who writes in pieces is
 * not read in the middle. It is the path that is looked at, not the file it led to at first: editors, and whoever wants
 * to be safe, put another file in the place of the old one, and Kubernetes swaps a link on the way to it.
 *
 * Asked five times a second instead of told by inotify: infer.yaml lies beside the database, whose every write would
 * wake the event loop (17 µs each, measured with 3,000 a second: 5 % of a processor), network file systems and files
 * mounted into containers tell nothing, and the number of watches is limited for all programs of a user together.
 */
export function watchPath({ path, settleMs, changed }: { path: string; settleMs: number; changed: () => void }): {
  close(): void
} {
  let timer: NodeJS.Timeout | undefined
  const noticed = () => {
    clearTimeout(timer)
    timer = setTimeout(changed, settleMs)
  }
  watchFile(path, { interval: everyMs, persistent: false }, noticed)
  return {
    close() {
      clearTimeout(timer)
      unwatchFile(path, noticed)
    },
  }
}
