import { type Canvas, darken } from './canvas.ts'

/** Rows of three dots from top to bottom; the highest bit is the left dot. */
const shapes: Record<string, readonly number[]> = {
  '0': [7, 5, 5, 5, 7],
  '1': [2, 6, 2, 2, 7],
  '2': [7, 1, 7, 4, 7],
  '3': [7, 1, 7, 1, 7],
  '4': [5, 5, 7, 1, 1],
  '5': [7, 4, 7, 1, 7],
  '6': [7, 4, 7, 5, 7],
  '7': [7, 1, 1, 1, 1],
  '8': [7, 5, 7, 5, 7],
  '9': [7, 5, 7, 1, 7],
  '/': [1, 1, 2, 4, 4],
}

/** Draws `7/81` in the upper right corner, in dots that stay readable after video compression. */
export function drawCounter(canvas: Canvas, index: number, total: number): void {
  const text = `${index}/${total}`
  const dot = Math.max(1, Math.floor(Math.min(canvas.height / 60, canvas.width / 80)))
  const width = (text.length * 4 + 1) * dot
  const left = canvas.width - width - 2 * dot
  const top = 2 * dot
  darken(canvas, { left, top, width, height: 7 * dot }, 90)
  for (const [at, sign] of Array.from(text).entries())
    for (const [row, bits] of shapes[sign]!.entries())
      for (let column = 0; column < 3; column++)
        if (bits & (4 >> column)) square(canvas, left + (at * 4 + 1 + column) * dot, top + (row + 1) * dot, dot)
}

function square({ data, width, height }: Canvas, left: number, top: number, side: number): void {
  for (let y = Math.max(0, top); y < Math.min(height, top + side); y++) {
    const from = (y * width + Math.max(0, left)) * 4
    data.fill(255, from, Math.max(from, (y * width + Math.min(width, left + side)) * 4))
  }
}
