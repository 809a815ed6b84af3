import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../failure.ts'

/** Bytes on the disk under a temporary name. */
export interface Written {
  path: string
  bytes: number
  /** Hex. */
  sha256: string
}

const full = new Set(['ENOSPC', 'EDQUOT'])

/** Returns Failure `disk_full` if the error means a full disk or quota, else the error itself. */
export function diskFailure(cause: unknown): unknown {
  if (!full.has((cause as NodeJS.ErrnoException | undefined)?.code ?? '')) return cause
  return new Failure('disk_full', 'The disk has no space for the file. Free some space and try again.', { cause })
}

/** Makes the failure of a file above the limit. It depends on whether a client or an engine sent the file. */
export type SizeFailure = (maxBytes: number) => Failure

/**
 * Writes a stream to a new file in `folder` and hashes it; `durable` fsyncs it. The file is removed if the source fails or
 * has more than `maxBytes`.
 */
export async function write(
  folder: string,
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: SizeFailure,
  { durable = true }: { durable?: boolean } = {},
): Promise<Written> {
  const path = join(folder, randomUUID())
  const hash = createHash('sha256')
  let bytes = 0
  try {
    await using file = await open(path, 'wx', 0o600)
    for await (const chunk of source) {
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      hash.update(chunk)
      for (let at = 0; at < chunk.byteLength; ) at += (await file.write(chunk, at)).bytesWritten
    }
    if (durable) await file.sync()
  } catch (cause) {
    await rm(path, { force: true })
    throw diskFailure(cause)
  }
  return { path, bytes, sha256: hash.digest('hex') }
}

/** Makes the bytes of a file that was written without `durable` survive a power loss. */
export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.datasync().catch((cause: unknown) => {
    throw diskFailure(cause)
  })
}

/** Renames the file to its final path. Once this resolves, the file survives a power loss. */
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
  await using directory = await open(path, 'r')
  await directory.sync()
}

/** Yields the bytes of the file from the beginning, in one buffer that every chunk reuses. */
export async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(1 << 20)
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read({ buffer, position })
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
