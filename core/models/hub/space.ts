import { stat, statfs } from 'node:fs/promises'
import { Failure } from '../../failure.ts'

/** Left free for everything else on the disk. */
const reserve = 512 << 20

/**
 * Makes sure that these files have room in the file system of `folder`, less what of them has arrived already.
 * Throws Failure `disk_full` with both figures.
 */
export async function requireSpace(
  folder: string,
  files: readonly { size: number; incomplete: string }[],
): Promise<void> {
  let needed = 0
  for (const { size, incomplete } of files)
    needed += Math.max(0, size - ((await stat(incomplete).catch(() => null))?.size ?? 0))
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (needed > 0 && needed + reserve > free)
    throw new Failure(
      'disk_full',
      `${megabytes(needed)} are to be downloaded to ${folder}, where ${megabytes(free)} are free, of which ${megabytes(reserve)} are left alone. Free some space, or choose another disk with HF_HOME.`,
    )
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`
