import { Failure } from '../failure.ts'
import { tensorTypes } from './gguf-types.ts'

/** A metadata value. Of a list of texts, or one that is very long, only the length is kept: they are vocabularies. */
export type GgufValue = string | number | boolean | readonly (number | boolean)[] | { readonly length: number }

export interface GgufTensor {
  name: string
  elements: number
  /** Bytes in the file; null for a kind of tensor that this program does not know. */
  bytes: number | null
}

export interface GgufContents {
  version: number
  metadata: ReadonlyMap<string, GgufValue>
  tensors: readonly GgufTensor[]
  /** Where the data of the tensors begin, bytes from the start of the file, and how much is there. */
  dataStart: number
  dataBytes: number
}

/** What the parser reads next: at least so many bytes from this offset. */
export interface ReadRequest {
  at: number
  bytes: number
}

/** Bounds for files that lie. Real headers have dozens of entries, a few thousand tensors and up to 20 MB. */
const most = {
  entries: 10_000,
  tensors: 65_536,
  name: 256,
  text: 1 << 20,
  list: 4096,
  dimensions: 4,
  /** Bytes of metadata that are held, and of header that are looked at. */
  kept: 16 << 20,
  head: 256 << 20,
}

const sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]
const textType = 8
const listType = 9

/**
 * Reads what stands before the data in a GGUF file of `size` bytes, versions 2 and 3, little-endian. It does no
 * input: it yields what it wants to see next and is resumed with that piece, so that a file, a download or a test can
 * feed it, and vocabularies are passed over without being held.
 * Throws Failure `invalid_value` for what is no such file; `name` is how messages call it.
 * Source: docs/gguf.md of ggml.
 */
export function* parseGguf(name: string, size: number): Generator<ReadRequest, GgufContents, Uint8Array> {
  let piece: Buffer = Buffer.alloc(0)
  let start = 0
  let at = 0
  let kept = 0
  const wrong = (what: string) => new Failure('invalid_value', `'${name}' ${what}`)
  const keep = (bytes: number) => {
    kept += bytes
    if (kept > most.kept) throw wrong(`has more than ${most.kept >> 20} MiB of metadata, which no model has.`)
  }
  const has = (bytes: number) => at >= start && at + bytes <= start + piece.length

  function* need(bytes: number): Generator<ReadRequest, void, Uint8Array> {
    if (at + bytes > size) throw wrong(`is incomplete: it ends in the middle of its header. Download it again.`)
    if (at + bytes > most.head) throw wrong(`has a header of more than ${most.head >> 20} MiB, which no model has.`)
    const found = yield { at, bytes }
    piece = Buffer.from(found.buffer, found.byteOffset, found.byteLength)
    start = at
    if (piece.length < bytes) throw wrong('became shorter while it was read.')
  }
  function* u32(): Generator<ReadRequest, number, Uint8Array> {
    if (!has(4)) yield* need(4)
    at += 4
    return piece.readUInt32LE(at - 4 - start)
  }
  function* u64(): Generator<ReadRequest, number, Uint8Array> {
    if (!has(8)) yield* need(8)
    const high = piece.readUInt32LE(at + 4 - start)
    const low = piece.readUInt32LE(at - start)
    at += 8
    // What is past 2^53 cannot be a length of anything; infinity fails every bound that follows.
    return high >= 1 << 21 ? Number.POSITIVE_INFINITY : high * 2 ** 32 + low
  }
  function* text(longest: number, what: string): Generator<ReadRequest, string, Uint8Array> {
    const length = yield* u64()
    if (length > longest) throw wrong(`has ${what} of ${length} bytes; at most ${longest} are read.`)
    keep(length)
    if (!has(length)) yield* need(length)
    at += length
    return piece.toString('utf8', at - length - start, at - start)
  }
  function* scalar(type: number): Generator<ReadRequest, number | boolean, Uint8Array> {
    const bytes = sizes[type]!
    if (!has(bytes)) yield* need(bytes)
    at += bytes
    return readScalar(piece, at - bytes - start, type)
  }
  function* value(key: string): Generator<ReadRequest, GgufValue, Uint8Array> {
    const type = yield* u32()
    if (type === textType) return yield* text(most.text, `a '${key}'`)
    if (type !== listType) {
      if (!sizes[type]) throw wrong(`has a '${key}' of the unknown type ${type}; it may be newer than this program.`)
      return yield* scalar(type)
    }
    const of = yield* u32()
    const length = yield* u64()
    const least = of === textType ? 8 : sizes[of]
    if (!least) throw wrong(`has a list '${key}' of the type ${of}, which is not known or not allowed in lists.`)
    if (length * least > size - at) throw wrong(`says that its list '${key}' has ${length} entries; it is too short.`)
    if (of === textType) {
      for (let entry = 0; entry < length; entry++) {
        if (!has(8)) yield* need(8)
        const bytes = piece.readUInt32LE(at + 4 - start) * 2 ** 32 + piece.readUInt32LE(at - start)
        if (bytes > size - at - 8) throw wrong(`has a text of ${bytes} bytes in '${key}', which is more than the file.`)
        at += 8 + bytes
      }
      return { length }
    }
    if (length > most.list) {
      at += length * least
      return { length }
    }
    keep(length * 8)
    const list: (number | boolean)[] = []
    for (let entry = 0; entry < length; entry++) list.push(yield* scalar(of))
    return list
  }
  function* tensor(alignment: number): Generator<ReadRequest, GgufTensor & { end: number }, Uint8Array> {
    const called = yield* text(most.name, 'the name of a tensor')
    const dimensions = yield* u32()
    if (dimensions > most.dimensions) throw wrong(`has a tensor '${called}' of ${dimensions} dimensions.`)
    let elements = 1
    for (let dimension = 0; dimension < dimensions; dimension++) elements *= yield* u64()
    if (!Number.isSafeInteger(elements)) throw wrong(`has a tensor '${called}' that is larger than any memory.`)
    const [inBlock, ofBlock] = tensorTypes[yield* u32()] ?? [0, 0]
    const offset = yield* u64()
    if (offset % alignment !== 0) throw wrong(`has a tensor '${called}' at the wrong place ${offset}.`)
    const bytes = inBlock === 0 ? null : Math.ceil(elements / inBlock) * ofBlock
    return { name: called, elements, bytes, end: offset + (bytes ?? 0) }
  }

  if (size < 24) throw wrong('is no GGUF file: it is too short to be one.')
  yield* need(24)
  if (piece.toString('latin1', 0, 4) !== 'GGUF') throw wrong(`is no GGUF file: it does not begin with 'GGUF'.`)
  at = 4
  const version = yield* u32()
  if (version > 0xffff)
    throw wrong("is a big-endian GGUF file. Convert it with llama.cpp's gguf_convert_endian.py, or get the usual one.")
  if (version !== 2 && version !== 3)
    throw wrong(`is a GGUF file of version ${version}; versions 2 and 3 can be read. Get or convert a newer file.`)
  const tensorCount = yield* u64()
  if (tensorCount > most.tensors) throw wrong(`says that it has ${tensorCount} tensors, which no model has.`)
  const entryCount = yield* u64()
  if (entryCount > most.entries) throw wrong(`says that it has ${entryCount} metadata entries, which no model has.`)

  const metadata = new Map<string, GgufValue>()
  for (let entry = 0; entry < entryCount; entry++) {
    const key = yield* text(most.name, 'a metadata key')
    if (metadata.has(key)) throw wrong(`has the metadata key '${key}' twice.`)
    metadata.set(key, yield* value(key))
  }
  const alignment = metadata.get('general.alignment') ?? 32
  if (typeof alignment !== 'number' || !Number.isInteger(Math.log2(alignment)) || alignment > 1 << 20)
    throw wrong(`has a 'general.alignment' that is no power of two.`)

  const tensors: GgufTensor[] = []
  let needed = 0
  for (let count = 0; count < tensorCount; count++) {
    const { end, ...one } = yield* tensor(alignment)
    needed = Math.max(needed, end)
    tensors.push(one)
  }
  const dataStart = Math.ceil(at / alignment) * alignment
  if (tensors.length > 0 && dataStart + needed > size)
    throw wrong(`is incomplete: it has ${size} bytes of ${dataStart + needed}. Download it again.`)
  return { version, metadata, tensors, dataStart, dataBytes: Math.max(0, size - dataStart) }
}

function readScalar(piece: Buffer, at: number, type: number): number | boolean {
  switch (type) {
    case 0:
      return piece.readUInt8(at)
    case 1:
      return piece.readInt8(at)
    case 2:
      return piece.readUInt16LE(at)
    case 3:
      return piece.readInt16LE(at)
    case 4:
      return piece.readUInt32LE(at)
    case 5:
      return piece.readInt32LE(at)
    case 6:
      return piece.readFloatLE(at)
    case 7:
      return piece.readUInt8(at) !== 0
    case 10:
      return Number(piece.readBigUInt64LE(at))
    case 11:
      return Number(piece.readBigInt64LE(at))
    default:
      return piece.readDoubleLE(at)
  }
}
