import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../../../core/files/remove-tree.ts'
import { workFolder } from '../../../core/files/workspaces.ts'
import type { Log } from '../../../core/log.ts'

/** How long what an engine has written for a job is kept after its last change, and milliseconds between two looks. */
const keptMs = 6 * 3_600_000
const lookMs = 600_000

/**
 * Removes what engines on this machine have written for jobs that have long ended: the server has fetched it over HTTP, and cannot
 * remove it, because it shares no folder with this machine. Resolves with how many folders and files were removed.
 */
export async function removeStaleOutputs(dataDir: string, before: number, log: Log): Promise<number> {
  const work = workFolder(dataDir)
  let removed = 0
  for (const engine of await readdir(work).catch(() => [])) {
    const outputs = join(work, engine, 'out')
    for (const name of await readdir(outputs).catch(() => [])) {
      const path = join(outputs, name)
      try {
        if ((await lstat(path)).mtimeMs >= before) continue
        await removeTree(path)
        removed++
      } catch (thrown) {
        log.warn('The files of a job could not be removed', { folder: path }, thrown)
      }
    }
  }
  return removed
}

/** Does that again and again until it is closed. */
export function sweepOutputs(dataDir: string, log: Log): { close(): void } {
  const timer = setInterval(() => void removeStaleOutputs(dataDir, Date.now() - keptMs, log), lookMs)
  timer.unref()
  return { close: () => clearInterval(timer) }
}
