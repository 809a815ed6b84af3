import { byRows, type Canvas } from './canvas.ts'
import { openSeeded } from './seeded.ts'

export interface PatternOptions {
  seed: number
  width: number
  height: number
  /** More steps add finer waves. */
  steps: number
  /** 1 to 20; a higher one makes stronger colours. */
  guidance: number
}

interface Wave {
  /** Full waves over the longer side, and over the whole time. */
  turns: number
  speed: number
  phase: number
  /** In colours of the palette. */
  height: number
}

/**
 * A pattern of waves in colours that follow from the seed. `paint` fills the canvas with it at a moment from 0 to 1;
 * what comes at 1 is what was at 0. A pixel is the sum of four waves, along the row, the column and both diagonals,
 * each computed once a frame, so that a pixel costs four additions whatever the number of waves.
 */
export function openPattern(
  options: PatternOptions,
): (canvas: Canvas, time: number, signal: AbortSignal) => Promise<void> {
  const { width, height } = options
  const next = openSeeded('pattern', options.seed)
  const colours = paletteOf(next, options.guidance)
  const longer = Math.max(width, height)
  const directions = [0, 1, 2, 3].map(() => {
    const waves: Wave[] = []
    for (let octave = 0; octave < 1 + Math.min(5, Math.floor(options.steps / 10)); octave++)
      waves.push({
        turns: (0.4 + next()) * 1.9 ** octave,
        speed: Math.round(1 + next()) * (next() < 0.5 ? -1 : 1),
        phase: next(),
        height: (50 + 40 * next()) / 1.9 ** octave,
      })
    return waves
  })
  const lines = [width, height, width + height, width + height].map(length => new Int32Array(length))

  return async (canvas, time, signal) => {
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

function fill(line: Int32Array, waves: readonly Wave[], longer: number, time: number): void {
  for (let at = 0; at < line.length; at++) {
    let sum = 0
    for (const { turns, speed, phase, height } of waves)
      sum += height * swing((at * turns) / longer + phase + speed * time)
    line[at] = Math.round(sum)
  }
}

/** From 0 to 1 and back over each whole number. Made of additions and products, which are the same on every machine. */
function swing(place: number): number {
  const part = place - Math.floor(place)
  const side = part < 0.5 ? 2 * part : 2 - 2 * part
  return side * side * (3 - 2 * side)
}

/** A ring of 256 colours through five that the seed chooses, as pixels of a canvas. */
function paletteOf(next: () => number, guidance: number): Uint32Array {
  const strength = Math.min(1, 0.45 + guidance / 20)
  const stops = [0, 1, 2, 3, 4].map(stop => {
    const light = stop % 2 === 0 ? 70 : 185
    return [0, 1, 2].map(() => Math.min(255, Math.max(0, light + (next() - 0.5) * 230 * strength)))
  })
  const colours = new Uint32Array(256)
  const bytes = new Uint8Array(colours.buffer)
  for (let at = 0; at < 256; at++) {
    const place = (at * stops.length) / 256
    const [one, other] = [stops[Math.floor(place)]!, stops[(Math.floor(place) + 1) % stops.length]!]
    const share = swing((place - Math.floor(place)) / 2)
    for (let channel = 0; channel < 3; channel++)
      bytes[at * 4 + channel] = Math.round(one[channel]! + (other[channel]! - one[channel]!) * share)
    bytes[at * 4 + 3] = 255
  }
  return colours
}
