import { invalidValue } from '../failure.ts'

/**
 * Tensor types by their number in the file: elements of a block, and bytes of a block.
 * Source: ggml of llama.cpp v0.5.0, through its own functions.
 */
const tensorTypes: Readonly<Record<number, readonly [elements: number, bytes: number]>> = {
  0: [1, 4], // F32
  1: [1, 2], // F16
  2: [32, 18], // Q4_0
  3: [32, 20], // Q4_1
  6: [32, 22], // Q5_0
  7: [32, 24], // Q5_1
  8: [32, 34], // Q8_0
  9: [32, 36], // Q8_1
  10: [256, 84], // Q2_K
  11: [256, 110], // Q3_K
  12: [256, 144], // Q4_K
  13: [256, 176], // Q5_K
  14: [256, 210], // Q6_K
  15: [256, 292], // Q8_K
  16: [256, 66], // IQ2_XXS
  17: [256, 74], // IQ2_XS
  18: [256, 98], // IQ3_XXS
  19: [256, 50], // IQ1_S
  20: [32, 18], // IQ4_NL
  21: [256, 110], // IQ3_S
  22: [256, 82], // IQ2_S
  23: [256, 136], // IQ4_XS
  24: [1, 1], // I8
  25: [1, 2], // I16
  26: [1, 4], // I32
  27: [1, 8], // I64
  28: [1, 8], // F64
  29: [256, 56], // IQ1_M
  30: [1, 2], // BF16
  34: [256, 54], // TQ1_0
  35: [256, 66], // TQ2_0
  39: [32, 17], // MXFP4
  40: [64, 36], // NVFP4
  41: [128, 18], // Q1_0
  42: [64, 18], // Q2_0
}

/** Quantization of most tensors of a file by `general.file_type`. Source: llama_ftype of llama.cpp v0.5.0. */
export const quantizations: Readonly<Record<number, string>> = {
  0: 'F32',
  1: 'F16',
  2: 'Q4_0',
  3: 'Q4_1',
  7: 'Q8_0',
  8: 'Q5_0',
  9: 'Q5_1',
  10: 'Q2_K',
  11: 'Q3_K_S',
  12: 'Q3_K_M',
  13: 'Q3_K_L',
  14: 'Q4_K_S',
  15: 'Q4_K_M',
  16: 'Q5_K_S',
  17: 'Q5_K_M',
  18: 'Q6_K',
  19: 'IQ2_XXS',
  20: 'IQ2_XS',
  21: 'Q2_K_S',
  22: 'IQ3_XS',
  23: 'IQ3_XXS',
  24: 'IQ1_S',
  25: 'IQ4_NL',
  26: 'IQ3_S',
  27: 'IQ3_M',
  28: 'IQ2_S',
  29: 'IQ2_M',
  30: 'IQ4_XS',
  31: 'IQ1_M',
  32: 'BF16',
  36: 'TQ1_0',
  37: 'TQ2_0',
  38: 'MXFP4',
  39: 'NVFP4',
  40: 'Q1_0',
  41: 'Q2_0',
}

/** A metadata value. Of a list of texts or a very long list only the length is kept, because these are vocabularies. */
export type GgufValue = string | number | boolean | readonly (number | boolean)[] | { readonly length: number }

export interface GgufTensor {
  name: string
  elements: number
  /** Its first dimension: the inputs of a matrix. */
  inputs: number
  /** Bytes in the file; null for an unknown type of tensor. */
  bytes: number | null
}

export interface GgufContents {
  version: number
  metadata: ReadonlyMap<string, GgufValue>
  tensors: readonly GgufTensor[]
  /** Offset and length of the tensor data in the file, in bytes. */
  dataStart: number
  dataBytes: number
}

/** What the parser reads next: at least `bytes` bytes from the offset `at`. */
export interface ReadRequest {
  at: number
  bytes: number
}

/** Limits for malicious files. Real headers have dozens of entries, a few thousand tensors and up to 20 MB. */
const limits = {
  entries: 10_000,
  tensors: 65_536,
  name: 256,
  text: 1 << 20,
  list: 4096,
  dimensions: 4,
  /** Bytes of metadata that are kept in memory. */
  kept: 16 << 20,
  /** Bytes of the header. */
  header: 256 << 20,
}

/** The types of numbers and flags by their number in the file: bytes of a value, and how it is read. */
const scalars: Readonly<Record<number, { bytes: number; read: (piece: Buffer, at: number) => number | boolean }>> = {
  0: { bytes: 1, read: (piece, at) => piece.readUInt8(at) },
  1: { bytes: 1, read: (piece, at) => piece.readInt8(at) },
  2: { bytes: 2, read: (piece, at) => piece.readUInt16LE(at) },
  3: { bytes: 2, read: (piece, at) => piece.readInt16LE(at) },
  4: { bytes: 4, read: (piece, at) => piece.readUInt32LE(at) },
  5: { bytes: 4, read: (piece, at) => piece.readInt32LE(at) },
  6: { bytes: 4, read: (piece, at) => piece.readFloatLE(at) },
  7: { bytes: 1, read: (piece, at) => piece.readUInt8(at) !== 0 },
  10: { bytes: 8, read: (piece, at) => Number(piece.readBigUInt64LE(at)) },
  11: { bytes: 8, read: (piece, at) => Number(piece.readBigInt64LE(at)) },
  12: { bytes: 8, read: (piece, at) => piece.readDoubleLE(at) },
}
const textType = 8
const listType = 9

/**
 * Parses the header of a GGUF file of `size` bytes, versions 2 and 3, little-endian. It does no I/O: it yields requests
 * for pieces of the file and is resumed with each piece, so that the bytes can come from a file, a download or a test. It
 * skips vocabularies without keeping them in memory.
 * Throws Failure `invalid_value` for an invalid file; messages call the file `name`.
 * Source: docs/gguf.md of ggml.
 */
export function* parseGguf(name: string, size: number): Generator<ReadRequest, GgufContents, Uint8Array> {
  let piece: Buffer = Buffer.alloc(0)
  let start = 0
  let at = 0
  let kept = 0
  const wrong = (what: string) => invalidValue(`'${name}' ${what}`)
  const keep = (bytes: number) => {
    kept += bytes
    if (kept > limits.kept) throw wrong(`has more than ${limits.kept >> 20} MiB of metadata, which no model has.`)
  }
  const has = (bytes: number) => at >= start && at + bytes <= start + piece.length

  function* need(bytes: number): Generator<ReadRequest, void, Uint8Array> {
    if (at + bytes > size) throw wrong(`is incomplete: it ends in the middle of its header. Download it again.`)
    if (at + bytes > limits.header)
      throw wrong(`has a header of more than ${limits.header >> 20} MiB, which no model has.`)
    const found = yield { at, bytes }
    piece = Buffer.from(found.buffer, found.byteOffset, found.byteLength)
    start = at
    if (piece.length < bytes) throw wrong('was truncated while it was read.')
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
    // A value above 2^53 cannot be a length; infinity exceeds every limit below.
    return high >= 1 << 21 ? Number.POSITIVE_INFINITY : high * 2 ** 32 + low
  }
  function* text(maxLength: number, what: string): Generator<ReadRequest, string, Uint8Array> {
    const length = yield* u64()
    if (length > maxLength) throw wrong(`has ${what} of ${length} bytes; at most ${maxLength} are allowed.`)
    keep(length)
    if (!has(length)) yield* need(length)
    at += length
    return piece.toString('utf8', at - length - start, at - start)
  }
  function* scalar(type: number): Generator<ReadRequest, number | boolean, Uint8Array> {
    const { bytes, read } = scalars[type]!
    if (!has(bytes)) yield* need(bytes)
    at += bytes
    return read(piece, at - bytes - start)
  }
  function* value(key: string): Generator<ReadRequest, GgufValue, Uint8Array> {
    const type = yield* u32()
    if (type === textType) return yield* text(limits.text, `a '${key}'`)
    if (type !== listType) {
      if (!scalars[type]) throw wrong(`has a '${key}' of the unknown type ${type}; it may be newer than this program.`)
      return yield* scalar(type)
    }
    const of = yield* u32()
    const length = yield* u64()
    const minSize = of === textType ? 8 : scalars[of]?.bytes
    if (!minSize) throw wrong(`has a list '${key}' of the type ${of}, which is not known or not allowed in lists.`)
    if (length * minSize > size - at) throw wrong(`is too short for its list '${key}' of ${length} entries.`)
    if (of === textType) {
      for (let entry = 0; entry < length; entry++) {
        if (!has(8)) yield* need(8)
        const bytes = piece.readUInt32LE(at + 4 - start) * 2 ** 32 + piece.readUInt32LE(at - start)
        if (bytes > size - at - 8)
          throw wrong(`has a text of ${bytes} bytes in '${key}', which is more than the file has.`)
        at += 8 + bytes
      }
      return { length }
    }
    if (length > limits.list) {
      at += length * minSize
      return { length }
    }
    keep(length * 8)
    const list: (number | boolean)[] = []
    for (let entry = 0; entry < length; entry++) list.push(yield* scalar(of))
    return list
  }
  function* tensor(alignment: number): Generator<ReadRequest, GgufTensor & { end: number }, Uint8Array> {
    const tensorName = yield* text(limits.name, 'the name of a tensor')
    const dimensions = yield* u32()
    if (dimensions > limits.dimensions) throw wrong(`has a tensor '${tensorName}' of ${dimensions} dimensions.`)
    let elements = 1
    let inputs = 1
    for (let dimension = 0; dimension < dimensions; dimension++) {
      const size = yield* u64()
      if (dimension === 0) inputs = size
      elements *= size
    }
    if (!Number.isSafeInteger(elements)) throw wrong(`has a tensor '${tensorName}' that is too large.`)
    const [inBlock, ofBlock] = tensorTypes[yield* u32()] ?? [0, 0]
    const offset = yield* u64()
    if (offset % alignment !== 0) throw wrong(`has a tensor '${tensorName}' at the invalid offset ${offset}.`)
    const bytes = inBlock === 0 ? null : Math.ceil(elements / inBlock) * ofBlock
    return { name: tensorName, elements, inputs, bytes, end: offset + (bytes ?? 0) }
  }

  if (size < 24) throw wrong('is not a GGUF file: it is too short.')
  yield* need(24)
  if (piece.toString('latin1', 0, 4) !== 'GGUF') throw wrong(`is not a GGUF file: it does not begin with 'GGUF'.`)
  at = 4
  const version = yield* u32()
  if (version > 0xffff)
    throw wrong(
      "is a big-endian GGUF file. Convert it with llama.cpp's gguf_convert_endian.py, or get a little-endian file.",
    )
  if (version !== 2 && version !== 3)
    throw wrong(`is a GGUF file of version ${version}; versions 2 and 3 are supported. Get a newer file or convert it.`)
  const tensorCount = yield* u64()
  if (tensorCount > limits.tensors) throw wrong(`claims to have ${tensorCount} tensors, which no model has.`)
  const entryCount = yield* u64()
  if (entryCount > limits.entries) throw wrong(`claims to have ${entryCount} metadata entries, which no model has.`)

  const metadata = new Map<string, GgufValue>()
  for (let entry = 0; entry < entryCount; entry++) {
    const key = yield* text(limits.name, 'a metadata key')
    if (metadata.has(key)) throw wrong(`has the metadata key '${key}' twice.`)
    metadata.set(key, yield* value(key))
  }
  const alignment = metadata.get('general.alignment') ?? 32
  if (typeof alignment !== 'number' || !Number.isInteger(Math.log2(alignment)) || alignment > 1 << 20)
    throw wrong(`has a 'general.alignment' that is not a power of two.`)

  const tensors: GgufTensor[] = []
  let needed = 0
  for (let count = 0; count < tensorCount; count++) {
    const { end, ...one } = yield* tensor(alignment)
    needed = Math.max(needed, end)
    tensors.push(one)
  }
  const dataStart = Math.ceil(at / alignment) * alignment
  if (tensors.length > 0 && dataStart + needed > size)
    throw wrong(`is incomplete: it has ${size} of ${dataStart + needed} bytes. Download it again.`)
  return { version, metadata, tensors, dataStart, dataBytes: Math.max(0, size - dataStart) }
}
