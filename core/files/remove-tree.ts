import { constants } from 'node:fs'
import { chmod, type FileHandle, lstat, open, readdir, rmdir, unlink } from 'node:fs/promises'

/** O_PATH of open(2), for which Node has no constant: opens a folder whatever its mode is. */
const pathOnly = 0o10000000

/** Each level keeps one file descriptor open, and the server must not run out of them. */
const maxDepth = 64

/**
 * Removes a file, a link or a folder with its contents, whatever their modes are. It is safe while an untrusted process
 * changes the folder: every step uses the descriptor of an open folder and follows no link, so nothing outside the folder
 * is removed or changed. Does nothing when the path does not exist.
 */
export async function removeTree(path: string): Promise<void> {
  await remove(path, 0)
}

async function remove(path: string | Buffer, depth: number): Promise<void> {
  if (depth > maxDepth) throw new Error(`its folders are nested more than ${maxDepth} levels deep`)
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

/** Opens a folder even if its mode forbids reading. */
async function openFolder(path: string | Buffer): Promise<FileHandle> {
  const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW
  {
    await using handle = await open(path, flags | pathOnly)
    await chmod(`/proc/self/fd/${handle.fd}`, 0o700)
  }
  return await open(path, flags)
}
