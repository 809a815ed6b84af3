import { byRows, type Canvas } from './canvas.ts'
import { type ImageSize, readImage } from './images.ts'
import { openSeeded } from './pattern.ts'

/** Zoom factor at the end. */
const zoom = 1.3

/**
 * Zooms slowly into an image: at time 0 the whole image, at 1 a part chosen by the seed. Colours are interpolated
 * between four pixels, so that slow movements are smooth.
 */
export async function openCameraMove(path: string, size: ImageSize, seed: number) {
  const { width, height } = size
  const source = await readImage(path, { width: Math.ceil(width * zoom), height: Math.ceil(height * zoom) }, 'cover')
  const next = openSeeded('journey', seed)
  const [toX, toY] = [next(), next()]
  const columns = new Int32Array(width)
  const shares = new Int32Array(width)
  const { data, width: sourceWidth, height: sourceHeight } = source

  return async (canvas: Canvas, time: number, signal: AbortSignal): Promise<void> => {
    const eased = time * time * (3 - 2 * time)
    const scale = 1 + (zoom - 1) * eased
    const [viewX, viewY] = [sourceWidth / scale, sourceHeight / scale]
    const [left, top] = [(sourceWidth - viewX) * toX, (sourceHeight - viewY) * toY]
    for (let x = 0; x < width; x++) {
      const position = Math.min(sourceWidth - 1.001, Math.max(0, left + ((x + 0.5) * viewX) / width - 0.5))
      columns[x] = Math.floor(position) * 4
      shares[x] = Math.floor((position - Math.floor(position)) * 256)
    }
    const { data: out } = canvas
    await byRows(height, signal, y => {
      const position = Math.min(sourceHeight - 1.001, Math.max(0, top + ((y + 0.5) * viewY) / height - 0.5))
      const upper = Math.floor(position) * sourceWidth * 4
      const lower = upper + sourceWidth * 4
      const share = Math.floor((position - Math.floor(position)) * 256)
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
