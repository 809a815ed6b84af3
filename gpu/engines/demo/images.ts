import { loadSharp } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Canvas } from './canvas.ts'

let loaded: ReturnType<typeof loadSharp> | undefined

/** Loads sharp with one thread per image, no cache, and only the decoders of the accepted formats. */
export function sharp(): ReturnType<typeof loadSharp> {
  if (!loaded) {
    loaded = loadSharp()
    loaded.concurrency(1)
    loaded.cache(false)
    loaded.block({ operation: ['VipsForeignLoad'] })
    loaded.unblock({ operation: ['Jpeg', 'Png', 'Webp'].map(format => `VipsForeignLoad${format}File`) })
  }
  return loaded
}

export interface ImageSize {
  width: number
  height: number
}

const upright = (path: string) => sharp()(path, { failOn: 'error' }).autoOrient()

/**
 * Reads an image and resizes it: `cover` crops, `fill` changes the proportions. Keeps transparency; an image that
 * already has the size is unchanged. Throws Failure `invalid_image`.
 */
export const readImage = (path: string, size: ImageSize, fit: 'cover' | 'fill'): Promise<Canvas> =>
  decoded(size, () => {
    const resized = upright(path).resize({ ...size, fit })
    return resized.toColourspace('srgb').ensureAlpha().raw().toBuffer()
  })

/** Reads a mask as one byte per pixel, 0 (black) to 255 (white). Transparent pixels count as black. */
export async function readMask(path: string, size: ImageSize): Promise<Uint8Array> {
  const { data } = await decoded(size, () => {
    const grey = upright(path).flatten({ background: 'black' })
    const resized = grey.resize({ ...size, fit: 'fill', kernel: 'nearest' })
    return resized.toColourspace('b-w').extractChannel(0).raw().toBuffer()
  })
  return data
}

async function decoded(size: ImageSize, read: () => Promise<Buffer>): Promise<Canvas> {
  try {
    const { buffer, byteOffset, byteLength } = await read()
    return { ...size, data: new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength) }
  } catch (cause) {
    throw new Failure('invalid_image', `An image cannot be decoded: ${(cause as Error).message}.`, { cause })
  }
}

/** Encodes the canvas, without alpha channel if every pixel is opaque. `quality` is for JPEG and WebP. */
export async function encodeImage(canvas: Canvas, format: 'png' | 'jpeg' | 'webp', quality = 90): Promise<Uint8Array> {
  const { width, height, data } = canvas
  const raw = sharp()(data, { raw: { width, height, channels: 4 } })
  const visible = format === 'jpeg' || isOpaque(data) ? raw.removeAlpha() : raw
  const written =
    format === 'png'
      ? visible.png({ compressionLevel: 3 })
      : format === 'jpeg'
        ? visible.jpeg({ quality })
        : visible.webp({ quality, effort: 2 })
  return written.toBuffer()
}

function isOpaque(data: Uint8Array): boolean {
  for (let at = 3; at < data.length; at += 4) if (data[at] !== 255) return false
  return true
}
