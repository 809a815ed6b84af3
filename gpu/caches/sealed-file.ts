import { createCipheriv, createDecipheriv, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'

/** Bytes that are encrypted at a time: a fraction of a millisecond. */
const pieceBytes = 256 << 10
const saltBytes = 16
const tagBytes = 16

export interface SealedFile {
  from: string
  to: string
  key: KeyObject
  /** What the file is: a file that was moved to another place cannot be opened there. */
  name: string
  /** Ends it between two pieces. */
  signal?: AbortSignal
}

/**
 * Writes an encrypted copy of a file, mode 0600, with its time of change: a salt, then pieces in AES-256-GCM, of which each
 * has its number, and the last one a mark. Never has more than a piece in memory. Rejects if the file is gone; the copy is
 * then absent.
 */
export const seal = (file: SealedFile): Promise<void> =>
  copied(file, async (source, target) => {
    const salt = randomBytes(saltBytes)
    await target.write(salt)
    await pieces(source, { length: pieceBytes, start: 0, signal: file.signal }, async (piece, at, isLast) => {
      const cipher = createCipheriv('aes-256-gcm', pieceKey(file.key, salt), nonceOf(at, isLast))
      cipher.setAAD(Buffer.from(file.name))
      await target.write(Buffer.concat([cipher.update(piece), cipher.final(), cipher.getAuthTag()]))
    })
    await target.datasync()
  })

/** Writes the content of a sealed file. Rejects if any byte of it was changed or is missing; nothing is written then. */
export const unseal = (file: SealedFile): Promise<void> =>
  copied(file, async (source, target) => {
    const salt = Buffer.alloc(saltBytes)
    await source.read(salt, 0, saltBytes, 0)
    await pieces(
      source,
      { length: pieceBytes + tagBytes, start: saltBytes, signal: file.signal },
      async (piece, at, isLast) => {
        const cipher = createDecipheriv('aes-256-gcm', pieceKey(file.key, salt), nonceOf(at, isLast), {
          authTagLength: tagBytes,
        })
        cipher.setAAD(Buffer.from(file.name))
        cipher.setAuthTag(piece.subarray(-tagBytes))
        await target.write(Buffer.concat([cipher.update(piece.subarray(0, -tagBytes)), cipher.final()]))
      },
    )
  })

/** One key for each file, so that the numbers of its pieces are never used twice. */
const pieceKey = (key: KeyObject, salt: Buffer) => Buffer.from(hkdfSync('sha256', key, salt, 'conversation', 32))

function nonceOf(at: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUInt32BE(at, 0)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

async function regular(file: FileHandle) {
  const stats = await file.stat()
  if (!stats.isFile()) throw new Error('It is no regular file.')
  return stats
}

async function pieces(
  source: FileHandle,
  { length, start, signal }: { length: number; start: number; signal: AbortSignal | undefined },
  take: (piece: Buffer, at: number, isLast: boolean) => Promise<void>,
): Promise<void> {
  const { size } = await source.stat()
  const buffer = Buffer.alloc(length)
  for (let at = 0, from = start; at === 0 || from < size; at++, from += length) {
    signal?.throwIfAborted()
    const { bytesRead } = await source.read(buffer, 0, Math.min(length, size - from), from)
    await take(buffer.subarray(0, bytesRead), at, from + length >= size)
  }
}

async function copied(
  { from, to, signal }: SealedFile,
  copy: (source: FileHandle, target: FileHandle) => Promise<void>,
): Promise<void> {
  const part = `${to}.part`
  try {
    // Engines can write in one of the folders: a link would lead to a file that they may not read or change.
    await using source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { atime, mtime } = await regular(source)
    await rm(part, { force: true })
    await using target = await open(part, 'wx', 0o600)
    await copy(source, target)
    await target.utimes(atime, mtime)
    signal?.throwIfAborted()
    await rename(part, to)
  } catch (thrown) {
    await rm(part, { force: true })
    throw thrown
  }
}
