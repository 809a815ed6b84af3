import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'

/** Limits the search time; real engines link fewer libraries. */
const maxFiles = 256

/**
 * Returns the dynamic linker of a program and the libraries that it loads from folders in RPATH and RUNPATH (with
 * `$ORIGIN`) of the program and its libraries. System libraries are left out, because every sandbox shows them.
 * Empty if the file is not an ELF program.
 */
export function sharedLibraries(program: string): string[] {
  const found = new Set<string>()
  const folders = new Set<string>()
  const pending = [program]
  for (let file = pending.shift(); file !== undefined && found.size < maxFiles; file = pending.shift()) {
    const links = elfLinks(file)
    if (!links) continue
    if (links.interpreter !== undefined && isAbsolute(links.interpreter)) found.add(links.interpreter)
    for (const folder of searchedFolders(file, links.searchPaths)) folders.add(folder)
    for (const name of links.needed) {
      const library = located(name, folders)
      if (library === undefined || found.has(library)) continue
      found.add(library)
      pending.push(library)
    }
  }
  return [...found]
}

/** `$ORIGIN` is the folder of the file's real path. */
function searchedFolders(file: string, searchPaths: readonly string[]): string[] {
  if (searchPaths.length === 0) return []
  const origin = dirname(realpathSync(file))
  return searchPaths
    .map(path => join(path.replace(/\$(?:ORIGIN|\{ORIGIN\})/g, origin)))
    .filter(path => isAbsolute(path))
}

/** Finds a library. A library inherits the RPATH of its loader, so every folder seen so far is searched. */
function located(name: string, folders: Iterable<string>): string | undefined {
  if (name.includes('/')) return isAbsolute(name) && existsSync(name) ? name : undefined
  for (const folder of folders) {
    const path = join(folder, name)
    if (existsSync(path)) return path
  }
  return undefined
}

/** Values of the ELF format, as in elf(5). */
const segment = { load: 1, dynamic: 2, interpreter: 3 }
const tag = { end: 0, needed: 1, strings: 5, rpath: 15, runpath: 29 }

/** Limits for damaged files, far above the values of real programs. */
const maxSegments = 256
const maxDynamicBytes = 64 << 10
const maxTextBytes = 16 << 10

/** Reads the links of a 64-bit ELF file; undefined for any other file and for an unreadable one. */
function elfLinks(file: string) {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, 'r')
    return linksIn(descriptor)
  } catch {
    return undefined
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

function linksIn(descriptor: number) {
  const header = read(descriptor, 0, 64)
  const isElf64 = header.length === 64 && header.toString('latin1', 0, 6) === '\x7fELF\x02\x01'
  if (!isElf64) return undefined
  const segments = segmentsOf(descriptor, header)
  const interpreter = segments.find(({ type }) => type === segment.interpreter)
  const dynamic = segments.find(({ type }) => type === segment.dynamic)
  const entries = dynamic ? entriesOf(read(descriptor, dynamic.offset, Math.min(dynamic.bytes, maxDynamicBytes))) : []
  const strings = fileOffset(entries.find(one => one.tag === tag.strings)?.value, segments)
  const texts = (...tags: number[]) =>
    strings === undefined
      ? []
      : entries.filter(one => tags.includes(one.tag)).map(({ value }) => textAt(descriptor, strings + value))
  return {
    /** Absolute path of the dynamic linker; undefined for libraries. */
    interpreter: interpreter && textAt(descriptor, interpreter.offset),
    /** Required libraries, usually file names without a folder. */
    needed: texts(tag.needed),
    /** Folders in RPATH and RUNPATH, with `$ORIGIN` not yet replaced. */
    searchPaths: texts(tag.rpath, tag.runpath).flatMap(paths => paths.split(':').filter(path => path !== '')),
  }
}

function segmentsOf(descriptor: number, header: Buffer) {
  const [size, count] = [header.readUInt16LE(54), Math.min(header.readUInt16LE(56), maxSegments)]
  if (size < 56) return []
  const table = read(descriptor, Number(header.readBigUInt64LE(32)), size * count)
  return Array.from({ length: Math.floor(table.length / size) }, (_, at) => {
    const start = at * size
    return {
      type: table.readUInt32LE(start),
      offset: Number(table.readBigUInt64LE(start + 8)),
      address: Number(table.readBigUInt64LE(start + 16)),
      bytes: Number(table.readBigUInt64LE(start + 32)),
    }
  })
}

function entriesOf(section: Buffer) {
  const entries = Array.from({ length: Math.floor(section.length / 16) }, (_, at) => ({
    tag: Number(section.readBigInt64LE(at * 16)),
    value: Number(section.readBigUInt64LE(at * 16 + 8)),
  }))
  const end = entries.findIndex(one => one.tag === tag.end)
  return end < 0 ? entries : entries.slice(0, end)
}

/** Converts a virtual address to the offset in the file. */
function fileOffset(address: number | undefined, segments: ReturnType<typeof segmentsOf>): number | undefined {
  if (address === undefined) return undefined
  const container = segments.find(
    one => one.type === segment.load && address >= one.address && address < one.address + one.bytes,
  )
  return container && address - container.address + container.offset
}

function textAt(descriptor: number, offset: number): string {
  const bytes = read(descriptor, offset, maxTextBytes)
  const end = bytes.indexOf(0)
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end)
}

/** Reads `length` bytes at the offset, or fewer at the end of the file. */
function read(descriptor: number, offset: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  return buffer.subarray(0, readSync(descriptor, buffer, 0, length, offset))
}
