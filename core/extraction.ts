import { hash, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { baseDirectory } from './base-directory.ts'
import { invalidValue } from './failure.ts'

/** One file of a tree, as it must lie on disk. Paths use `/` and are relative to the tree. */
export interface TreeFile {
  path: string
  size: number
  /** Hexadecimal. */
  sha256: string
}

/** The bytes of a file, read in pieces: whole, they would cost the start memory that it does not need again. */
export interface FileContent {
  size: number
  /** Fills the buffer with the bytes from `at` on. */
  read: (into: Uint8Array, at: number) => void
}

/** Returns the folder of extracted files: INFER_CACHE_DIR, XDG_CACHE_HOME/infer, or ~/.cache/infer. */
export function cacheDirectory(env: NodeJS.ProcessEnv = process.env): string {
  if (env.INFER_CACHE_DIR) {
    if (isAbsolute(env.INFER_CACHE_DIR)) return env.INFER_CACHE_DIR
    throw invalidValue(
      `INFER_CACHE_DIR is '${env.INFER_CACHE_DIR}'; it must be an absolute path, such as /var/cache/infer.`,
    )
  }
  return join(baseDirectory('XDG_CACHE_HOME', env), 'infer')
}

/**
 * Makes sure that a file with exactly these bytes is in the folder and returns its path. An existing file is compared
 * byte by byte and, if it differs, replaced by one rename, so that concurrent starts always see a complete file.
 * Throws Failure `invalid_value` when the folder cannot be used.
 */
export function extractFile(folder: string, name: string, content: FileContent): string {
  const path = join(folder, name)
  return guarded(folder, () => {
    privateFolder(folder)
    if (holds(path, content)) return path
    privateFolder(dirname(path))
    const temporary = temporaryName(path)
    try {
      writeContent(temporary, content)
      renameSync(temporary, path)
    } catch (cause) {
      rmSync(temporary, { force: true })
      throw cause
    }
    removeOldBuilds(folder)
    return path
  })
}

/**
 * The same for a tree of files: unless the folder has exactly the listed files with the listed hashes, all of it is
 * replaced. `contents` returns the bytes of the files one after the other, in the order of the list.
 */
export function extractTree(
  folder: string,
  name: string,
  files: readonly TreeFile[],
  contents: () => Uint8Array,
): string {
  const path = join(folder, name)
  return guarded(folder, () => {
    privateFolder(folder)
    for (let attempt = 1; !isTree(path, files); attempt++) {
      // Something keeps changing the folder. It is not a race of starts, because that ends with the first complete tree.
      if (attempt > 3) throw new Error('its files change while they are being checked')
      const temporary = temporaryName(path)
      try {
        writeTree(temporary, files, contents())
        // The folder that exists already is mostly the complete tree of a faster start, and in use: it must stay.
        if (!tryRename(temporary, path) && !isTree(path, files)) {
          moveAside(path)
          tryRename(temporary, path)
        }
      } finally {
        rmSync(temporary, { recursive: true, force: true })
      }
      removeOldBuilds(folder)
    }
    return path
  })
}

const pieceBytes = 64 << 10

/** Whether the path is a regular file, not a link, with exactly these bytes. */
function holds(path: string, { size, read }: FileContent): boolean {
  const same = withRegular(path, size, descriptor => {
    const [found, expected] = [new Uint8Array(pieceBytes), new Uint8Array(pieceBytes)]
    for (let at = 0; at < size; ) {
      const bytes = readSync(descriptor, found, 0, Math.min(pieceBytes, size - at), at)
      const piece = expected.subarray(0, bytes)
      read(piece, at)
      if (bytes === 0 || Buffer.compare(found.subarray(0, bytes), piece) !== 0) return false
      at += bytes
    }
    return true
  })
  return same ?? false
}

function writeContent(path: string, { size, read }: FileContent): void {
  const descriptor = openSync(path, 'wx', 0o600)
  try {
    const piece = new Uint8Array(pieceBytes)
    for (let at = 0; at < size; at += pieceBytes) {
      const bytes = piece.subarray(0, Math.min(pieceBytes, size - at))
      read(bytes, at)
      writeFileSync(descriptor, bytes)
    }
  } finally {
    closeSync(descriptor)
  }
}

function isTree(path: string, files: readonly TreeFile[]): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return false
  // An additional file counts as a difference: an added package in the right folder would be imported before ours.
  const found = new Set(pathsBelow(path))
  return (
    found.size === files.length &&
    files.every(file => {
      const matches = (descriptor: number) => hash('sha256', readFileSync(descriptor)) === file.sha256
      return found.has(file.path) && withRegular(join(path, file.path), file.size, matches) === true
    })
  )
}

/** Paths of everything but folders, relative to the folder. The recursion of `readdirSync` would follow links. */
const pathsBelow = (folder: string, within = ''): string[] =>
  readdirSync(join(folder, within), { withFileTypes: true }).flatMap(entry => {
    const path = join(within, entry.name)
    return entry.isDirectory() ? pathsBelow(folder, path) : [path]
  })

/** Calls the function with the opened file; returns undefined when the path is not a regular file of this size. */
function withRegular<T>(path: string, size: number, use: (descriptor: number) => T): T | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
  try {
    const stat = fstatSync(descriptor)
    return stat.isFile() && stat.size === size ? use(descriptor) : undefined
  } finally {
    closeSync(descriptor)
  }
}

function writeTree(path: string, files: readonly TreeFile[], contents: Uint8Array): void {
  const folders = new Set(files.map(file => dirname(join(path, file.path))))
  for (const folder of folders) makeFolder(folder)
  let at = 0
  for (const file of files) {
    writeFileSync(join(path, file.path), contents.subarray(at, at + file.size), { mode: 0o600, flag: 'wx' })
    at += file.size
  }
}

/** Renames a folder. Returns false when the target exists already. */
function tryRename(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (cause) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes((cause as NodeJS.ErrnoException).code ?? '')) return false
    throw cause
  }
}

/** Renames what is at the path, so that the path becomes free at once, and then removes it. */
function moveAside(path: string): void {
  const aside = temporaryName(path)
  try {
    renameSync(path, aside)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return
    throw cause
  }
  rmSync(aside, { recursive: true, force: true })
}

const temporaryName = (path: string) => `${path}.${process.pid}-${randomBytes(6).toString('hex')}.tmp`

/** Creates the folder and its parents. Not with `recursive`: Node 24 never returns from that below /proc. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || dirname(path) === path) throw cause
    makeFolder(dirname(path))
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (second) {
      if ((second as NodeJS.ErrnoException).code !== 'EEXIST') throw second
    }
  }
}

/** Makes sure that the folder belongs to our user and that no other user can write to it: native code is loaded from it. */
function privateFolder(path: string): void {
  let stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) {
    makeFolder(path)
    stat = lstatSync(path)
  }
  if (!stat.isDirectory()) throw new Error(`${path} is not a folder`)
  if (stat.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user`)
  if (stat.mode & 0o022) throw new Error(`others can write to ${path}`)
}

const keptBuilds = 3
const leftoverMs = 3_600_000

/** Removes all but the newest builds beside this one, and temporary files of starts that were killed. */
function removeOldBuilds(folder: string): void {
  try {
    const beside = dirname(folder)
    const builds = readdirSync(beside)
      .filter(name => /-[0-9a-f]{16}$/.test(name) && name !== basename(folder))
      .map(name => ({ path: join(beside, name), at: lstatSync(join(beside, name)).mtimeMs }))
      .sort((one, other) => other.at - one.at)
    const leftovers = readdirSync(folder)
      .filter(name => name.endsWith('.tmp'))
      .map(name => ({ path: join(folder, name), at: lstatSync(join(folder, name)).mtimeMs }))
      .filter(({ at }) => Date.now() - at > leftoverMs)
    for (const { path } of [...builds.slice(keptBuilds), ...leftovers]) rmSync(path, { recursive: true, force: true })
  } catch {
    // Another start may be removing the same files, or files of another user may be there: neither stops this start.
  }
}

function guarded<T>(folder: string, extract: () => T): T {
  try {
    return extract()
  } catch (cause) {
    throw invalidValue(
      `The cache directory ${dirname(folder)} cannot be used (${(cause as Error).message}); set INFER_CACHE_DIR to a directory that belongs to you and that you can write to.`,
      { cause },
    )
  }
}
