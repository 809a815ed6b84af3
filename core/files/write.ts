import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../failure.ts'

/** Bytes that lie on the disk for good under a name that nobody knows yet. */
export interface Written {
  path: string
  bytes: number
  /** Hex. */
  sha256: string
}

const full = new Set(['ENOSPC', 'EDQUOT'])

/** A full disk is told apart from what is broken. */
export function diskFailure(cause: unknown): unknown {
  if (!full.has((cause as NodeJS.ErrnoException | undefined)?.code ?? '')) return cause
  return new Failure('disk_full', 'There is no room for the file on the disk. Try again when there is.', { cause })
}

/** What is begun once the limit is passed is the sender's fault or the engine's, so the caller says which. */
export type TooLarge = (most: number) => Failure

/**
 * Writes what comes, hashed on its way and fsynced unless told otherwise, under a new name in `folder`. Nothing stays
 * when it does not come whole: the source failed, or had more than `most` bytes.
 */
export async function write(
  folder: string,
  source: AsyncIterable<Uint8Array>,
  most: number,
  tooLarge: TooLarge,
  { durable = true }: { durable?: boolean } = {},
): Promise<Written> {
  const path = join(folder, randomUUID())
  const hash = createHash('sha256')
  let bytes = 0
  const file = await open(path, 'wx', 0o600).catch((cause: unknown) => {
    throw diskFailure(cause)
  })
  try {
    for await (const chunk of source) {
      bytes += chunk.byteLength
      if (bytes > most) throw tooLarge(most)
      hash.update(chunk)
      for (let at = 0; at < chunk.byteLength; ) at += (await file.write(chunk, at)).bytesWritten
    }
    if (durable) await file.sync()
  } catch (cause) {
    await file.close()
    await rm(path, { force: true })
    throw diskFailure(cause)
  }
  await file.close()
  return { path, bytes, sha256: hash.digest('hex') }
}

/** Puts it under its name; when this resolves, it is there after a power loss too. */
export async function commitFile(written: Written, to: string): Promise<void> {
  const folder = dirname(to)
  try {
    const made = await mkdir(folder, { recursive: true, mode: 0o700 })
    if (made !== undefined) await syncDirectory(dirname(folder))
    await rename(written.path, to)
    await syncDirectory(folder)
  } catch (cause) {
    await rm(written.path, { force: true })
    throw diskFailure(cause)
  }
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
