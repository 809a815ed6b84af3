import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/**
 * Opens a folder in which an engine can write, and runs work with a function that returns the path of a name in it. The
 * paths lead into this very folder, even if the engine puts a link in its place meanwhile; a link in a name is still
 * followed. Undefined if the folder is missing or is a link.
 */
export async function inFolder<Result>(
  folder: string,
  work: (pathOf: (name: string) => string) => Promise<Result>,
): Promise<Result | undefined> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
  const held = await open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(() => undefined)
  if (!held) return undefined
  try {
    return await work(name => `/proc/self/fd/${held.fd}/${name}`)
  } finally {
    await held.close()
  }
}
