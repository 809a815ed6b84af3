import { createHash } from 'node:crypto'
import { byRows, type Canvas } from './canvas.ts'

export interface PatternOptions {
  seed: number
  width: number
  height: number
  /** More steps add finer waves. */
  steps: number
  /** 1 to 20; a higher value makes stronger colours. */
  guidance: number
}

/**
 * Creates a pattern of waves; waves and colours are derived from the seed. The returned function draws it at a time
 * from 0 to 1, and time 1 equals time 0. A pixel is the sum of four values, along the row, the column and both
 * diagonals, each computed once per frame, so that a pixel costs four additions whatever the number of waves.
 */
export function openPattern(options: PatternOptions) {
  const { width, height } = options
  const next = openSeeded('pattern', options.seed)
  const colours = paletteOf(next, options.guidance)
  const longer = Math.max(width, height)
  const directions = [0, 1, 2, 3].map(() => {
    const octaves = 1 + Math.min(5, Math.floor(options.steps / 10))
    return Array.from({ length: octaves }, (_, octave) => ({
      /** Periods over the longer side, and over the whole duration. */
      turns: (0.4 + next()) * 1.9 ** octave,
      speed: Math.round(1 + next()) * (next() < 0.5 ? -1 : 1),
      phase: next(),
      /** Amplitude in palette indices. */
      height: (50 + 40 * next()) / 1.9 ** octave,
    }))
  })
  const lines = [width, height, width + height, width + height].map(length => new Int32Array(length))

  return async (canvas: Canvas, time: number, signal: AbortSignal): Promise<void> => {
    for (const [at, waves] of directions.entries()) fill(lines[at]!, waves, longer, time)
    const [across, down, falling, rising] = lines as [Int32Array, Int32Array, Int32Array, Int32Array]
    const pixels = new Uint32Array(canvas.data.buffer, canvas.data.byteOffset, width * height)
    await byRows(height, signal, y => {
      const base = down[y]!
      const row = y * width
      for (let x = 0; x < width; x++)
        pixels[row + x] = colours[(across[x]! + base + falling[x + y]! + rising[x - y + height]!) & 255]!
    })
  }
}

interface Wave {
  turns: number
  speed: number
  phase: number
  height: number
}

function fill(line: Int32Array, waves: readonly Wave[], longer: number, time: number): void {
  for (let at = 0; at < line.length; at++) {
    let sum = 0
    for (const { turns, speed, phase, height } of waves)
      sum += height * wave((at * turns) / longer + phase + speed * time)
    line[at] = Math.round(sum)
  }
}

/** A smooth wave from 0 to 1 and back with period 1, using only sums and products, which are exact on every machine. */
function wave(position: number): number {
  const part = position - Math.floor(position)
  const side = part < 0.5 ? 2 * part : 2 - 2 * part
  return side * side * (3 - 2 * side)
}

/** A cyclic palette of 256 colours, interpolated between five random ones, as canvas pixels. */
function paletteOf(next: () => number, guidance: number): Uint32Array {
  const strength = Math.min(1, 0.45 + guidance / 20)
  const stops = [0, 1, 2, 3, 4].map(stop => {
    const light = stop % 2 === 0 ? 70 : 185
    return [0, 1, 2].map(() => Math.min(255, Math.max(0, light + (next() - 0.5) * 230 * strength)))
  })
  const colours = new Uint32Array(256)
  const bytes = new Uint8Array(colours.buffer)
  for (let at = 0; at < 256; at++) {
    const position = (at * stops.length) / 256
    const [one, other] = [stops[Math.floor(position)]!, stops[(Math.floor(position) + 1) % stops.length]!]
    const share = wave((position - Math.floor(position)) / 2)
    for (let channel = 0; channel < 3; channel++)
      bytes[at * 4 + channel] = Math.round(one[channel]! + (other[channel]! - one[channel]!) * share)
    bytes[at * 4 + 3] = 255
  }
  return colours
}

/** A deterministic random number generator for [0, 1): the same seed words give the same numbers on every machine. */
export function openSeeded(...words: readonly (string | number)[]): () => number {
  const start = createHash('sha256').update(JSON.stringify(words)).digest()
  let block = start
  let at = 0
  return () => {
    if (at === block.length) {
      block = createHash('sha256').update(start).update(block).digest()
      at = 0
    }
    at += 4
    return block.readUInt32LE(at - 4) / 2 ** 32
  }
}
