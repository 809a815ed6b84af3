import type { VectorType } from './vectors.ts'

/** Numbers of a vector in the type that the caller wants. */
export type TypedVector = Float32Array | Int8Array | Uint8Array

/** Returns the vector scaled to the length 1. */
export function normalize(vector: Float32Array): Float32Array {
  let sum = 0
  for (const number of vector) sum += number * number
  const length = Math.sqrt(sum) || 1
  return vector.map(number => number / length)
}

/**
 * Returns the numbers in another type. A byte stands for a number from -1 to 1 in steps of 1/127; a bit for its sign, the
 * first number in the highest bit, and missing bits of the last byte are 0. Signed bytes of bits are 128 less.
 */
export function typedVector(vector: Float32Array, type: VectorType): TypedVector {
  switch (type) {
    case 'float':
      return vector
    case 'int8':
      return Int8Array.from(vector, byteOf)
    case 'uint8':
      return Uint8Array.from(vector, number => byteOf(number) + 128)
    case 'ubinary':
      return signs(vector)
    case 'binary':
      return Int8Array.from(signs(vector), byte => byte - 128)
  }
}

const byteOf = (number: number): number => Math.round(Math.min(1, Math.max(-1, number)) * 127)

function signs(vector: Float32Array): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(vector.length / 8))
  vector.forEach((number, at) => {
    if (number > 0) bytes[at >> 3]! |= 128 >> (at & 7)
  })
  return bytes
}

/** Returns the bytes of the numbers in base64; floats are little-endian. */
export const base64Of = (vector: TypedVector): string =>
  Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
