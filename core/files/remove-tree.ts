import { constants } from 'node:fs'
import { chmod, type FileHandle, lstat, open, readdir, rmdir, unlink } from 'node:fs/promises'

/** The flag of open(2) that Node has no name for: a handle to a folder whatever its mode is. */
const pathOnly = 0o10000000

/** Each level keeps a file open, and the server must not run out of them. */
const deepest = 64

/**
 * Removes a file, a link or a folder with all that is in it, whatever its modes are. It is safe while an untrusted
 * process still changes the folder: every step goes by way of an open folder and follows no link, so nothing outside of
 * the folder is removed or changed. Does nothing when the path does not exist.
 */
export async function removeTree(path: string): Promise<void> {
  await remove(path, 0)
}

async function remove(path: string | Buffer, depth: number): Promise<void> {
  if (depth > deepest) throw new Error(`its folders are nested more than ${deepest} levels deep`)
  try {
    const facts = await lstat(path)
    if (!facts.isDirectory()) return await unlink(path)
    await using folder = await openFolder(path)
    for (const name of await readdir(`/proc/self/fd/${folder.fd}`, { encoding: 'buffer' }))
      await remove(Buffer.concat([Buffer.from(`/proc/self/fd/${folder.fd}/`), name]), depth + 1)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return
    throw cause
  }
  await rmdir(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== 'ENOENT') throw cause
  })
}

/** Opens a folder that may have been made unreadable. */
async function openFolder(path: string | Buffer): Promise<FileHandle> {
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW
  {
    await using handle = await open(path, flags | pathOnly)
    await chmod(`/proc/self/fd/${handle.fd}`, 0o700)
  }
  return await open(path, flags)
}
