import { byRows, type Canvas } from './canvas.ts'
import { readImage, type Size } from './images.ts'
import { openSeeded } from './seeded.ts'

/** How much nearer the picture is at the end. */
const zoom = 1.3

/**
 * A slow way into a picture: the whole of it at 0, at 1 a part in the direction that the seed chooses. Between four
 * pixels of the picture colours are mixed, so that slow movements do not jump.
 */
export async function openCameraMove(
  path: string,
  size: Size,
  seed: number,
): Promise<(canvas: Canvas, time: number, signal: AbortSignal) => Promise<void>> {
  const { width, height } = size
  const source = await readImage(path, { width: Math.ceil(width * zoom), height: Math.ceil(height * zoom) }, 'cover')
  const next = openSeeded('journey', seed)
  const [toX, toY] = [next(), next()]
  const columns = new Int32Array(width)
  const shares = new Int32Array(width)
  const { data, width: across, height: down } = source

  return async (canvas, time, signal) => {
    const eased = time * time * (3 - 2 * time)
    const scale = 1 + (zoom - 1) * eased
    const [viewX, viewY] = [across / scale, down / scale]
    const [left, top] = [(across - viewX) * toX, (down - viewY) * toY]
    for (let x = 0; x < width; x++) {
      const place = Math.min(across - 1.001, Math.max(0, left + ((x + 0.5) * viewX) / width - 0.5))
      columns[x] = Math.floor(place) * 4
      shares[x] = Math.floor((place - Math.floor(place)) * 256)
    }
    const { data: out } = canvas
    await byRows(height, signal, y => {
      const place = Math.min(down - 1.001, Math.max(0, top + ((y + 0.5) * viewY) / height - 0.5))
      const upper = Math.floor(place) * across * 4
      const lower = upper + across * 4
      const share = Math.floor((place - Math.floor(place)) * 256)
      let at = y * width * 4
      for (let x = 0; x < width; x++, at += 4) {
        const column = columns[x]!
        const part = shares[x]!
        for (let channel = 0; channel < 3; channel++) {
          const a = data[upper + column + channel]!
          const b = data[lower + column + channel]!
          const one = (a << 8) + (data[upper + column + 4 + channel]! - a) * part
          const other = (b << 8) + (data[lower + column + 4 + channel]! - b) * part
          out[at + channel] = ((one << 8) + (other - one) * share) >> 16
        }
      }
    })
  }
}
