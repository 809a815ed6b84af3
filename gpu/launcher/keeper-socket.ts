import { closeSync, openSync } from 'node:fs'

/**
 * Address of the keeper's socket in the folder `run` of a data directory. It leads through an open folder, because the
 * kernel limits paths of sockets to 108 bytes; `close` closes that.
 */
export function keeperSocket(runFolder: string): { path: string; close: () => void } {
  const folder = openSync(runFolder, 'r')
  return { path: `/proc/self/fd/${folder}/keeper`, close: () => closeSync(folder) }
}

/** How the process is named that keeps engines. Its working directory is the folder of the socket. */
export const keeperTitle = 'infer keeper'
