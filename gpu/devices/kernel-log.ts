import { constants, openSync, readSync } from 'node:fs'

/**
 * Opens the kernel's log, which only root may read on most machines, for as long as the process runs. Returns a function
 * that reads the lines since the last call; undefined where it cannot be read. Never waits.
 */
export function openKernelLog(path = '/dev/kmsg'): (() => string[]) | undefined {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
  const buffer = Buffer.alloc(8192)
  const read = (): string[] => {
    const lines: string[] = []
    // One line for each read; some may have been overwritten before (EPIPE). At most what a log of 16 MB has.
    for (let left = 100_000; left > 0; left--)
      try {
        const length = readSync(file, buffer)
        if (length === 0) break
        lines.push(buffer.toString('utf8', 0, length))
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code !== 'EPIPE') break
      }
    return lines
  }
  // What was reported before the server has started is not new.
  read()
  return read
}
