import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { Failure } from '../../failure.ts'

const blockBytes = 512
/** Maximum bytes of a header with further attributes. */
const maxAttributes = 1 << 20

interface TarballOptions {
  signal: AbortSignal
  /** Paths for which it is false are left out; by default none. */
  isWanted?: (path: string) => boolean
  /**
   * `package` (the default): one of npm; the folder that holds the files in the archive is left out, and links are refused.
   * `program`: paths are kept, and so are links to another file of their folder, as libraries have them.
   */
  kind?: 'package' | 'program'
}

/**
 * Writes the files of a compressed tar archive below `folder`; those that may be executed in the archive may be executed
 * there too. Needs the memory of a few pieces, whatever the size. Rejects with Failure `worker_error` for an archive that
 * is damaged, has links that are not allowed, or a path that leaves the folder; what was written before stays.
 */
export async function extractTarball(archive: string, folder: string, options: TarballOptions): Promise<void> {
  const { signal } = options
  try {
    await pipeline(
      createReadStream(archive),
      createGunzip(),
      (pieces: AsyncIterable<Buffer>) => unpack(pieces, archive, folder, options),
      { signal },
    )
  } catch (thrown) {
    signal.throwIfAborted()
    const code = String((thrown as NodeJS.ErrnoException).code)
    if (code.startsWith('Z_')) throw damaged(archive, 'it cannot be unpacked')
    if (code === 'EEXIST') throw damaged(archive, 'it has a file twice')
    throw thrown
  }
}

async function unpack(
  pieces: AsyncIterable<Buffer>,
  archive: string,
  folder: string,
  { isWanted = () => true, kind = 'package' }: TarballOptions,
): Promise<void> {
  const source = reader(pieces[Symbol.asyncIterator](), archive)
  let longPath: string | undefined
  for (let header = await source.block(); header?.some(byte => byte !== 0); header = await source.block()) {
    const { path, size, type, link, isProgram } = readHeader(header, archive)
    if (type === 'x' || type === 'g') {
      if (size > maxAttributes) throw damaged(archive, 'a header of it is too long')
      const parts: Buffer[] = []
      for await (const piece of source.content(size)) parts.push(Buffer.from(piece))
      if (type === 'x') longPath = /^\d+ path=([^\n]+)\n/m.exec(Buffer.concat(parts).toString('utf8'))?.[1]
      continue
    }
    const whole = pathWithin(longPath ?? path, archive)
    const within = kind === 'package' ? whole.split('/').slice(1).join('/') : whole
    longPath = undefined
    // A folder. Those of the files are made with them.
    if (type === '5') continue
    const target = join(folder, within)
    if (type === '2' && kind === 'program' && isFileName(link)) {
      await mkdir(dirname(target), { recursive: true })
      await symlink(link, target)
      continue
    }
    if (type !== '0') throw damaged(archive, `'${within}' is not a plain file`)
    let file: FileHandle | undefined
    try {
      if (isWanted(within)) {
        await mkdir(dirname(target), { recursive: true })
        // Not through a link of the archive.
        file = await open(target, 'wx', isProgram ? 0o755 : 0o644)
      }
      for await (const piece of source.content(size)) await file?.appendFile(piece)
    } finally {
      await file?.close()
    }
  }
}

/** Reads a stream in blocks of 512 bytes: headers, and contents that are filled up to the end of a block. */
function reader(pieces: AsyncIterator<Buffer>, archive: string) {
  let rest: Buffer = Buffer.alloc(0)
  /** Takes up to `most` bytes; undefined at the end of the stream. */
  async function take(most: number): Promise<Buffer | undefined> {
    while (rest.length === 0) {
      const { done, value } = await pieces.next()
      if (done) return undefined
      rest = value
    }
    const part = rest.subarray(0, most)
    rest = rest.subarray(part.length)
    return part
  }
  async function* exactly(bytes: number): AsyncGenerator<Buffer, void, void> {
    for (let left = bytes; left > 0; ) {
      const part = await take(left)
      if (!part) throw damaged(archive, 'it ends too early')
      left -= part.length
      yield part
    }
  }
  return {
    /** Undefined at the end of the stream. */
    async block(): Promise<Buffer | undefined> {
      const first = await take(blockBytes)
      if (!first) return undefined
      const parts = [Buffer.from(first)]
      for await (const part of exactly(blockBytes - first.length)) parts.push(Buffer.from(part))
      return Buffer.concat(parts)
    },
    async *content(bytes: number): AsyncGenerator<Buffer, void, void> {
      yield* exactly(bytes)
      for await (const _filling of exactly((blockBytes - (bytes % blockBytes)) % blockBytes));
    },
  }
}

/** Source: the ustar format of POSIX.1-1988. */
function readHeader(header: Buffer, archive: string) {
  const text = (from: number, bytes: number) => header.toString('utf8', from, from + bytes).split('\0')[0]!
  const octal = (from: number, bytes: number) => Number.parseInt(text(from, bytes).trim() || '0', 8)
  const sum = header.reduce((all, byte, at) => all + (at >= 148 && at < 156 ? 32 : byte), 0)
  const size = octal(124, 12)
  if (sum !== octal(148, 8) || !Number.isSafeInteger(size)) throw damaged(archive, 'a header of it is wrong')
  const prefix = text(257, 5) === 'ustar' ? text(345, 155) : ''
  const path = `${prefix === '' ? '' : `${prefix}/`}${text(0, 100)}`
  return { path, size, type: text(156, 1) || '0', link: text(157, 100), isProgram: (octal(100, 8) & 0o100) !== 0 }
}

/** Whether a link leads to a file of its own folder. */
export const isFileName = (link: string): boolean =>
  link !== '' && link !== '.' && link !== '..' && !link.includes('/') && !link.includes('\0')

/** The path below the folder, without `.` and empty parts. */
export function pathWithin(path: string, archive: string): string {
  const parts = path.split('/').filter(part => part !== '' && part !== '.')
  if (path.startsWith('/') || parts.includes('..') || path.includes('\0'))
    throw damaged(archive, `the path '${path}' leaves the folder of the package`)
  return parts.join('/')
}

const damaged = (archive: string, what: string) => new Failure('worker_error', `${archive} cannot be read: ${what}.`)
