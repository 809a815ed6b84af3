/** One metadata value of a GGUF file with its type, which the format requires. */
export type WritableGgufValue =
  | readonly ['u32' | 'f32', number]
  | readonly ['bool', boolean]
  | readonly ['string', string]
  | readonly ['string[]', readonly string[]]
  | readonly ['i32[]' | 'f32[]', readonly number[]]

/** A float32 tensor. `shape` counts the fastest dimension first: a matrix from 64 inputs to 10 outputs is [64, 10]. */
export interface Tensor {
  name: string
  shape: readonly number[]
  data: Float32Array
}

const alignment = 32

/**
 * The bytes of a GGUF version 3 file: header, metadata, tensor directory, then the aligned data.
 * Source: docs/gguf.md of ggml.
 */
export function writeGguf(metadata: Record<string, WritableGgufValue>, tensors: readonly Tensor[]): Buffer {
  const chunks: Uint8Array[] = []
  let length = 0
  const push = (bytes: Uint8Array) => {
    chunks.push(bytes)
    length += bytes.length
  }
  /** In the byte order of the machine: like the format, all that build infer have the lowest byte first. */
  const numbers = (values: Uint32Array | BigUint64Array | Int32Array | Float32Array) =>
    push(new Uint8Array(values.buffer))
  const u32 = (value: number) => numbers(Uint32Array.of(value))
  const u64 = (value: number) => numbers(BigUint64Array.of(BigInt(value)))
  const string = (value: string) => {
    const bytes = Buffer.from(value)
    u64(bytes.length)
    push(bytes)
  }
  /** The number of each type in the format, and how a value of it is written. */
  const types = {
    u32: [4, u32],
    i32: [5, (value: number) => numbers(Int32Array.of(value))],
    f32: [6, (value: number) => numbers(Float32Array.of(value))],
    bool: [7, (value: boolean) => push(Uint8Array.of(value ? 1 : 0))],
    string: [8, string],
  } as const
  const arrayType = 9
  const pad = () => push(Buffer.alloc((alignment - (length % alignment)) % alignment))

  push(Buffer.from('GGUF'))
  u32(3)
  u64(tensors.length)
  u64(Object.keys(metadata).length)
  for (const [key, [type, value]] of Object.entries(metadata)) {
    string(key)
    const [number, write] = types[type.replace('[]', '') as keyof typeof types]
    if (Array.isArray(value)) u32(arrayType)
    u32(number)
    if (Array.isArray(value)) u64(value.length)
    for (const one of [value].flat()) write(one as never)
  }

  let offset = 0
  for (const { name, shape, data } of tensors) {
    const elements = shape.reduce((product, size) => product * size, 1)
    if (data.length !== elements)
      throw new Error(`Tensor ${name} has ${data.length} numbers where its shape wants ${elements}.`)
    string(name)
    u32(shape.length)
    for (const size of shape) u64(size)
    u32(0) // float32
    u64(offset)
    offset += Math.ceil(data.byteLength / alignment) * alignment
  }
  pad()
  for (const { data } of tensors) {
    push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
    pad()
  }
  return Buffer.concat(chunks)
}

/** A tensor filled from a function of the flat index, or with one number. */
export function tensor(name: string, shape: readonly number[], fill: number | ((index: number) => number)): Tensor {
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1))
  if (typeof fill === 'number') data.fill(fill)
  else for (let index = 0; index < data.length; index++) data[index] = fill(index)
  return { name, shape, data }
}

/** A seeded source of numbers, the same on every machine: it uses nothing that may round differently elsewhere. */
export function openRandom(seed: number) {
  let state = seed >>> 0
  /** Uniform in [0, 1). mulberry32. */
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  /** Close to normal with mean 0 and variance 1: the sum of twelve uniforms, because log and cos differ in last bits. */
  const normal = () => {
    let sum = -6
    for (let i = 0; i < 12; i++) sum += uniform()
    return sum
  }
  return { uniform, normal }
}
