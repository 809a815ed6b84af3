import { setImmediate as turn } from 'node:timers/promises'

/** An image in memory: four bytes per pixel (red, green, blue, alpha), row by row. */
export interface Canvas {
  width: number
  height: number
  data: Uint8Array<ArrayBuffer>
}

export const openCanvas = (width: number, height: number): Canvas => ({
  width,
  height,
  data: new Uint8Array(width * height * 4),
})

/** Longest time that drawing blocks the event loop, in milliseconds. */
const sliceMs = 8

/** Calls `row` for every row and yields to the event loop in between, so that large images do not block `/health`. */
export async function byRows(height: number, signal: AbortSignal, row: (y: number) => void): Promise<void> {
  let since = performance.now()
  for (let y = 0; y < height; y++) {
    row(y)
    if (performance.now() - since < sliceMs) continue
    await turn()
    signal.throwIfAborted()
    since = performance.now()
  }
}

/**
 * Draws an image with an alpha channel of the same size over the canvas, which is opaque then. With an `amount` below 1
 * the image is more transparent.
 */
export async function drawOver(canvas: Canvas, over: Canvas, signal: AbortSignal, amount = 1): Promise<void> {
  const { data, width } = canvas
  const share = Math.round(amount * 256)
  await byRows(canvas.height, signal, y => {
    for (let at = y * width * 4; at < (y + 1) * width * 4; at += 4) {
      const alpha = over.data[at + 3]! + 1
      for (let channel = at; channel < at + 3; channel++) {
        const whole = ((over.data[channel]! - data[channel]!) * alpha) >> 8
        data[channel] = data[channel]! + ((whole * share) >> 8)
      }
      data[at + 3] = 255
    }
  })
}

export interface Stamp extends Canvas {
  left: number
  top: number
}

export function drawStamp(canvas: Canvas, { left, top, width, height, data: over }: Stamp): void {
  const { data } = canvas
  const [fromX, toX] = [Math.max(0, -left), Math.min(width, canvas.width - left)]
  for (let y = Math.max(0, -top); y < Math.min(height, canvas.height - top); y++) {
    let from = (y * width + fromX) * 4
    let to = ((top + y) * canvas.width + left + fromX) * 4
    for (let x = fromX; x < toX; x++, from += 4, to += 4) {
      const alpha = over[from + 3]!
      if (alpha === 0) continue
      for (let channel = 0; channel < 3; channel++)
        data[to + channel] = data[to + channel]! + (((over[from + channel]! - data[to + channel]!) * (alpha + 1)) >> 8)
    }
  }
}

/** Scales the brightness of a rectangle to `light` 256ths, so that light text stands out. */
export function darken(
  { data, width: rowWidth, height: rows }: Canvas,
  box: { left: number; top: number; width: number; height: number },
  light: number,
): void {
  const [left, right] = [Math.max(0, box.left), Math.min(rowWidth, box.left + box.width)]
  for (let y = Math.max(0, box.top); y < Math.min(rows, box.top + box.height); y++)
    for (let at = (y * rowWidth + left) * 4; at < (y * rowWidth + right) * 4; at += 4) {
      data[at] = (data[at]! * light) >> 8
      data[at + 1] = (data[at + 1]! * light) >> 8
      data[at + 2] = (data[at + 2]! * light) >> 8
    }
}
