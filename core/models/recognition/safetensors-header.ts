import { Failure, invalidValue } from '../../failure.ts'
import { isObject } from '../../json.ts'
import type { ReadRequest } from '../gguf-format.ts'

/** The header of a safetensors file. */
export interface SafetensorsHeader {
  /** `__metadata__`: texts that the program that wrote the file added. */
  metadata: ReadonlyMap<string, string>
  tensors: TensorSizes
}

/** Maximum bytes of the header. Those of the largest models have about 10 MB. */
const maxHeader = 64 << 20
const maxTensors = 200_000

/** Bytes of the length before the header. */
const lengthBytes = 8

/** Whether these first bytes of a file of `size` bytes can be those of a safetensors file. */
export function isSafetensors(head: Uint8Array, size: number): boolean {
  if (head.length <= lengthBytes || head[lengthBytes] !== 0x7b) return false
  return Buffer.from(head.buffer, head.byteOffset, lengthBytes).readBigUInt64LE() <= BigInt(size)
}

/**
 * Parses the header of a safetensors file of `size` bytes. It does no I/O: it yields requests for pieces of the file and
 * is resumed with each, like `parseGguf`. Throws Failure `invalid_value` for an invalid file; messages call it `name`.
 * Source: the format description of safetensors.
 */
export function* parseSafetensors(name: string, size: number): Generator<ReadRequest, SafetensorsHeader, Uint8Array> {
  const wrong = (what: string) => invalidValue(`'${name}' ${what}`)
  if (size < lengthBytes) throw wrong('is not a safetensors file: it is too short.')
  const start = Buffer.from(yield { at: 0, bytes: lengthBytes })
  if (start.length < lengthBytes) throw wrong('was truncated while it was read.')
  const declared = start.readBigUInt64LE()
  if (start.length > lengthBytes && start[lengthBytes] !== 0x7b) throw wrong('is not a safetensors file.')
  if (declared > BigInt(maxHeader))
    throw wrong(
      `is not a safetensors file: its header would have ${declared} bytes, and no model has more than ${maxHeader}.`,
    )
  const length = Number(declared)
  if (lengthBytes + length > size) throw wrong('is incomplete: it ends in the middle of its header. Download it again.')
  const whole = start.length >= lengthBytes + length
  const body = whole ? start.subarray(lengthBytes) : Buffer.from(yield { at: lengthBytes, bytes: length })
  if (body.length < length) throw wrong('was truncated while it was read.')
  const tensors = new Map<string, number>()
  const metadata = new Map<string, string>()
  for (const [key, value] of Object.entries(parsed(body.subarray(0, length), wrong))) {
    if (key === '__metadata__') {
      for (const [about, text] of Object.entries((value ?? {}) as object))
        if (typeof text === 'string') metadata.set(about, text)
      continue
    }
    const { shape } = (value ?? {}) as { shape?: unknown }
    if (!Array.isArray(shape) || !shape.every(part => Number.isSafeInteger(part) && part >= 0))
      throw wrong(`is not a safetensors file: its tensor '${key.slice(0, 100)}' has no shape.`)
    tensors.set(
      key,
      (shape as number[]).reduce((product, part) => product * part, 1),
    )
    if (tensors.size > maxTensors) throw wrong(`has more than ${maxTensors} tensors, which no model has.`)
  }
  if (tensors.size === 0) throw wrong('contains no tensors, so it is not a model.')
  return { metadata, tensors }
}

function parsed(bytes: Buffer, wrong: (what: string) => Failure): object {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw wrong('is not a safetensors file: its header is not JSON.')
  }
  if (!isObject(value)) throw wrong('is not a safetensors file: its header is not a JSON object.')
  return value
}

/** The tensors of a file by name, with their number of elements, which quantization does not change. */
export type TensorSizes = ReadonlyMap<string, number>
