import { stat, statfs } from 'node:fs/promises'
import { Failure } from '../../failure.ts'

/** Space that is left free on the disk. */
const reserve = 512 << 20

/**
 * Makes sure that the file system of `folder` has space for the missing bytes of these files.
 * Rejects with Failure `disk_full`, which names both sizes.
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
      `The download needs ${megabytes(needed)} in ${folder}, where ${megabytes(free)} are free, and ${megabytes(reserve)} must stay free. Free some space, or choose another disk with HF_HOME.`,
    )
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`
