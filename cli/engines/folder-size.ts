import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes of the files in a folder, and of those that have another name too: hard links take no space of their own. */
export async function sharedBytes(folder: string): Promise<{ bytes: number; shared: number }> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])
  let [bytes, shared] = [0, 0]
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const { size, nlink } = (await stat(join(entry.parentPath, entry.name)).catch(() => null)) ?? { size: 0, nlink: 1 }
    bytes += size
    if (nlink > 1) shared += size
  }
  return { bytes, shared }
}

/** Bytes of the files in a folder; 0 for one that does not exist. */
export const folderBytes = async (folder: string): Promise<number> => (await sharedBytes(folder)).bytes
