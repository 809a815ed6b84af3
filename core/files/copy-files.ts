import { constants } from 'node:fs'
import { copyFile, link, mkdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { filePathOf } from './file-path.ts'
import { syncDirectory } from './write.ts'

interface CopyOptions {
  dataDir: string
  files: readonly { id: string; organizationId: string; contentType: string }[]
  /** A folder that does not exist yet. */
  to: string
  onProgress: (done: number, total: number) => void
}

const codeOf = (cause: unknown): string | undefined => (cause as NodeJS.ErrnoException | undefined)?.code

/** On the same disk a file is linked: its bytes never change. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(async (cause: unknown) => {
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP'].includes(codeOf(cause) ?? '')) throw cause
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  })
}

/**
 * Copies the bytes of files to a new folder with the structure of `<data dir>/files`. A file that was deleted meanwhile is
 * left out. Rejects with the error of the system, `EEXIST` for a folder that exists.
 */
export async function copyFiles(options: CopyOptions): Promise<{ count: number; bytes: number; missing: number }> {
  const { dataDir, files, to, onProgress } = options
  await mkdir(to, { mode: 0o700 })
  const folders = new Set<string>()
  let [count, bytes, missing] = [0, 0, 0]
  for (const file of files) {
    const target = filePathOf(to, file)
    const folder = dirname(target)
    if (!folders.has(folder)) await mkdir(folder, { recursive: true, mode: 0o700 })
    folders.add(folder)
    try {
      await linkOrCopy(filePathOf(join(dataDir, 'files'), file), target)
      bytes += (await stat(target)).size
      count++
    } catch (cause) {
      if (codeOf(cause) !== 'ENOENT') throw cause
      missing++
    }
    onProgress(count + missing, files.length)
  }
  for (const folder of [...folders, to]) await syncDirectory(folder)
  return { count, bytes, missing }
}
