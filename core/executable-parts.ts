import { constants, fstatSync, openSync, readSync } from 'node:fs'

/** Where the content of an asset lies in the executable file. */
type Part = [start: number, size: number]

/** The last bytes of the executable: the size of the list of its parts, which lies before them, and this mark. */
const mark = 'infer/parts'
const endBytes = 4 + mark.length

/**
 * The assets of the executable, read from its file. Unlike `getRawAsset` of Node, which gives the executable's own memory
 * pages, this leaves nothing resident: for assets that are read once.
 */
export interface ExecutableParts {
  has: (name: string) => boolean
  size: (name: string) => number
  /** Fills the buffer with the bytes of an asset from `at` on. Throws when the file ends before. */
  read: (name: string, into: Uint8Array, at?: number) => void
}

/** Returns what must be appended to an executable so that `openExecutableParts` finds the assets in it. */
export function partsList(parts: Readonly<Record<string, Part>>): Buffer {
  const list = Buffer.from(JSON.stringify(parts))
  const size = Buffer.alloc(4)
  size.writeUInt32LE(list.length)
  return Buffer.concat([list, size, Buffer.from(mark)])
}

/** The argument with which the executable is the keeper of engines, and starts without the program. */
export const keeperArgument = '__keep-engines'

let opened: ExecutableParts | undefined

/** Opens the executable of this process; it stays open, because an update may replace the file. */
export function ownParts(): ExecutableParts {
  opened ??= openExecutableParts('/proc/self/exe')
  return opened
}

/** Throws when the file is not an executable of infer. */
export function openExecutableParts(path: string): ExecutableParts {
  const file = openSync(path, constants.O_RDONLY)
  const fill = (into: Uint8Array, start: number) => {
    for (let done = 0; done < into.length; ) {
      const bytes = readSync(file, into, done, into.length - done, start + done)
      if (bytes === 0) throw new Error(`${path} is shorter than it should be.`)
      done += bytes
    }
    return into
  }
  const total = fstatSync(file).size
  const end = Buffer.from(fill(new Uint8Array(endBytes), total - endBytes))
  if (end.toString('latin1', 4) !== mark) throw new Error(`${path} is not a complete executable of infer.`)
  const listBytes = end.readUInt32LE(0)
  const list = Buffer.from(fill(new Uint8Array(listBytes), total - endBytes - listBytes))
  const parts = new Map(Object.entries(JSON.parse(list.toString('latin1')) as Record<string, Part>))
  const partOf = (name: string) => {
    const part = parts.get(name)
    if (!part) throw new Error(`${path} has no asset ${name}.`)
    return part
  }
  return {
    has: name => parts.has(name),
    size: name => partOf(name)[1],
    read: (name, into, at = 0) => {
      const [start, size] = partOf(name)
      if (at + into.length > size) throw new Error(`The asset ${name} has only ${size} bytes.`)
      fill(into, start + at)
    },
  }
}
