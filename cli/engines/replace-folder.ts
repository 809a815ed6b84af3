import { existsSync } from 'node:fs'
import { rename, rm, symlink } from 'node:fs/promises'

/**
 * Gives the folder `by` the name `path`. What had it gets the name `aside`, which must be on the same disk and not exist, and
 * its own name again if the new folder cannot be renamed.
 */
export async function replaceFolder(path: string, by: string, aside: string): Promise<void> {
  const isReplaced = existsSync(path)
  if (isReplaced) await rename(path, aside)
  try {
    await rename(by, path)
  } catch (thrown) {
    if (isReplaced) await rename(aside, path)
    throw thrown
  }
}

/** Makes the symbolic link at `path` lead to `target`, in one step. */
export async function replaceLink(path: string, target: string): Promise<void> {
  await rm(`${path}.new`, { force: true })
  await symlink(target, `${path}.new`)
  await rename(`${path}.new`, path)
}
