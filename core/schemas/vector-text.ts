import type { TypedVector } from './typed-vector.ts'

/** Bytes of the longest text of a number, with a comma. */
const maxBytes = 26
/** How many numbers are written before they become a text. */
const atOnce = 4_096
const scratch = new Uint8Array(atOnce * maxBytes)

/**
 * Returns a vector as JSON. Each number has as few digits as give the same 32-bit float again, which takes half the bytes
 * and a fraction of the time of printing it as a 64-bit one: 0.1 instead of 0.10000000149011612.
 */
export function vectorText(vector: TypedVector): string {
  if (!(vector instanceof Float32Array)) return `[${vector.join()}]`
  const pieces: string[] = []
  for (let at = 0; at < vector.length; at += atOnce) pieces.push(numbersText(vector.subarray(at, at + atOnce)))
  return `[${pieces.join()}]`
}

/** Returns numbers with commas between them, at most `atOnce`. */
function numbersText(vector: Float32Array): string {
  let end = 0
  for (let at = 0; at < vector.length; at++) {
    if (at > 0) scratch[end++] = 0x2c
    end = writeNumber(vector[at]!, end)
  }
  return Buffer.from(scratch.buffer, 0, end).toString('latin1')
}

/** 10 to the power of the index. */
const powers = Array.from({ length: 13 }, (_, exponent) => 10 ** exponent)

/** Writes one number at a place of the scratch, and returns where it ends. */
function writeNumber(number: number, at: number): number {
  const size = Math.abs(number)
  // Nine digits identify a float, and many need fewer. Numbers of this range have no exponent.
  if (size >= 0.0001 && size < 1) {
    const zeros = size >= 0.1 ? 0 : size >= 0.01 ? 1 : size >= 0.001 ? 2 : 3
    for (let places = zeros + 7; places <= zeros + 9; places++) {
      const power = powers[places]!
      const digits = Math.round(size * power)
      if (Math.fround(digits / power) === size) return writeFraction(number < 0, digits, places, at)
    }
  }
  const text = String(number)
  for (let place = 0; place < text.length; place++) scratch[at + place] = text.charCodeAt(place)
  return at + text.length
}

const million = 1_000_000

/** Writes `digits` ÷ 10^`places`, which is below 1, without zeros at its end. */
function writeFraction(negative: boolean, digits: number, places: number, at: number): number {
  if (negative) scratch[at++] = 0x2d
  scratch[at++] = 0x30
  scratch[at++] = 0x2e
  // In two parts of 32 bits: dividing a 64-bit float takes several times as long.
  let high = Math.floor(digits / million) | 0
  let low = (digits - high * million) | 0
  const split = at + places - 6
  for (let place = at + places - 1; place >= split; place--) {
    const rest = (low / 10) | 0
    scratch[place] = 0x30 + low - rest * 10
    low = rest
  }
  for (let place = split - 1; place >= at; place--) {
    const rest = (high / 10) | 0
    scratch[place] = 0x30 + high - rest * 10
    high = rest
  }
  let end = at + places
  while (scratch[end - 1] === 0x30) end--
  return end
}
