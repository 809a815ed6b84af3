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
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { Failure } from './failure.ts'

/** One file of a tree, as it must lie on disk. Paths use `/` and are relative to the tree. */
export interface TreeFile {
  path: string
  size: number
  /** Hexadecimal. */
  sha256: string
}

/** Where extracted parts lie: INFER_CACHE_DIR, XDG_CACHE_HOME/infer, or ~/.cache/infer. */
export function cacheDirectory(env: NodeJS.ProcessEnv = process.env): string {
  if (env.INFER_CACHE_DIR) {
    if (isAbsolute(env.INFER_CACHE_DIR)) return env.INFER_CACHE_DIR
    throw new Failure(
      'invalid_value',
      `INFER_CACHE_DIR is '${env.INFER_CACHE_DIR}'; it must be an absolute path, such as /var/cache/infer.`,
    )
  }
  // The XDG rules say that a relative path there is to be ignored.
  const base = env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME) ? env.XDG_CACHE_HOME : join(homedir(), '.cache')
  return join(base, 'infer')
}

/**
 * Makes sure that a file with exactly these bytes lies in the folder and gives back its path. What lies there already
 * is compared byte by byte and replaced when it differs, in one rename, so that starts which race see a whole file.
 * Throws Failure `invalid_value` when the folder cannot be used.
 */
export function extractFile(folder: string, name: string, content: Uint8Array): string {
  const path = join(folder, name)
  return guarded(folder, () => {
    privateFolder(folder)
    if (holds(path, content)) return path
    privateFolder(dirname(path))
    const temporary = temporaryName(path)
    try {
      writeFileSync(temporary, content, { mode: 0o600, flag: 'wx' })
      renameSync(temporary, path)
    } catch (cause) {
      rmSync(temporary, { force: true })
      throw cause
    }
    forgetOldBuilds(folder)
    return path
  })
}

/**
 * The same for a whole tree of files: what lies there already must be exactly the listed files with the listed hashes,
 * or all of it is replaced. `contents` gives the bytes of the files one after the other, in the order of the list.
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
      // Somebody is at work in the folder, again and again: not a race of starts, which ends with the first tree.
      if (attempt > 3) throw new Error('its files change while they are being checked')
      const temporary = temporaryName(path)
      try {
        writeTree(temporary, files, contents())
        // What is in the way is most often the whole tree of a start that was faster, and in use: it must stay.
        if (!moved(temporary, path) && !isTree(path, files)) {
          moveAside(path)
          moved(temporary, path)
        }
      } finally {
        rmSync(temporary, { recursive: true, force: true })
      }
      forgetOldBuilds(folder)
    }
    return path
  })
}

/** Whether a regular file with exactly these bytes, and no link, lies there. */
function holds(path: string, content: Uint8Array): boolean {
  const found = readRegular(path, content.byteLength)
  return found !== undefined && Buffer.compare(found, content) === 0
}

function isTree(path: string, files: readonly TreeFile[]): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat?.isDirectory()) return false
  // A file too many counts as well: one more package in the right place would be imported before ours.
  const found = new Set(pathsBelow(path))
  return (
    found.size === files.length &&
    files.every(file => {
      const bytes = found.has(file.path) ? readRegular(join(path, file.path), file.size) : undefined
      return bytes !== undefined && hash('sha256', bytes) === file.sha256
    })
  )
}

/** Everything but folders, relative to the folder. Own recursion, because that of `readdirSync` follows links. */
const pathsBelow = (folder: string, within = ''): string[] =>
  readdirSync(join(folder, within), { withFileTypes: true }).flatMap(entry => {
    const path = join(within, entry.name)
    return entry.isDirectory() ? pathsBelow(folder, path) : [path]
  })

function readRegular(path: string, size: number): Buffer | undefined {
  let descriptor: number
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
  try {
    const stat = fstatSync(descriptor)
    return stat.isFile() && stat.size === size ? readFileSync(descriptor) : undefined
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

/** Whether the folder could be moved there: not when something is in the way. */
function moved(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (cause) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes((cause as NodeJS.ErrnoException).code ?? '')) return false
    throw cause
  }
}

/** CommitEffects what is not ours out of the way and removes it. */
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

/** Creates the folder and those above it. Not `recursive`: Node 24 never returns from that below /proc. */
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
    } catch (again) {
      if ((again as NodeJS.ErrnoException).code !== 'EEXIST') throw again
    }
  }
}

/** A folder of our own user that nobody else can write to: native code is loaded from it. */
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

/** Removes all but the newest builds beside this one, and what a killed start left half written. */
function forgetOldBuilds(folder: string): void {
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
    // Another start tidies at the same time, or somebody else's files lie there: none of it stops this start.
  }
}

function guarded<T>(folder: string, place: () => T): T {
  try {
    return place()
  } catch (cause) {
    throw new Failure(
      'invalid_value',
      `The cache directory ${dirname(folder)} cannot be used (${(cause as Error).message}); set INFER_CACHE_DIR to a directory of your own that can be written to.`,
      { cause },
    )
  }
}
