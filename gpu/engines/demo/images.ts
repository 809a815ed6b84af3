import { writeFile } from 'node:fs/promises'
import { loadSharp } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Canvas } from './canvas.ts'

let loaded: ReturnType<typeof loadSharp> | undefined

/** One core a picture, nothing kept from one to the next, and of all decoders only those of the formats that are taken. */
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

export interface Size {
  width: number
  height: number
}

/**
 * A picture from the disk in the wanted size: `cover` cuts off what does not fit, `fill` changes its proportions. It
 * keeps its transparency; one that has the size already keeps every pixel as it is. Throws Failure `invalid_image`.
 */
export async function readImage(path: string, size: Size, fit: 'cover' | 'fill'): Promise<Canvas> {
  return decoded(size, async () => {
    const upright = sharp()(path, { failOn: 'error' }).autoOrient()
    return upright
      .resize({ ...size, fit })
      .toColourspace('srgb')
      .ensureAlpha()
      .raw()
      .toBuffer()
  })
}

/** How white a mask is at each pixel, 0 to 255, one byte each. What is transparent counts as black. */
export async function readMask(path: string, size: Size): Promise<Uint8Array> {
  const grey = sharp()(path, { failOn: 'error' }).autoOrient().flatten({ background: 'black' })
  const { data } = await decoded(size, () =>
    grey
      .resize({ ...size, fit: 'fill', kernel: 'nearest' })
      .toColourspace('b-w')
      .extractChannel(0)
      .raw()
      .toBuffer(),
  )
  return data
}

async function decoded(size: Size, read: () => Promise<Buffer>): Promise<Canvas> {
  try {
    const { buffer, byteOffset, byteLength } = await read()
    return { ...size, data: new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength) }
  } catch (cause) {
    throw new Failure('invalid_image', `A picture cannot be decoded: ${(cause as Error).message}.`, { cause })
  }
}

/** Writes the canvas as a picture. One without transparency gets three channels. */
export async function writeImage(canvas: Canvas, path: string, format: 'png' | 'jpeg' | 'webp'): Promise<void> {
  const { width, height, data } = canvas
  const raw = sharp()(data, { raw: { width, height, channels: 4 } })
  const seen = format === 'jpeg' || opaque(data) ? raw.removeAlpha() : raw
  const written =
    format === 'png'
      ? seen.png({ compressionLevel: 3 })
      : format === 'jpeg'
        ? seen.jpeg({ quality: 90 })
        : seen.webp({ quality: 90, effort: 2 })
  await writeFile(path, await written.toBuffer())
}

function opaque(data: Uint8Array): boolean {
  for (let at = 3; at < data.length; at += 4) if (data[at] !== 255) return false
  return true
}
