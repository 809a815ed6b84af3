import type { Resolution } from '../../schemas/resolution.ts'

/** Sizes of images and videos in pixels, multiples of 16 as the models require. */

export interface Size {
  width: number
  height: number
}

export const aspectRatios = ['16:9', '9:16', '1:1'] as const
export type AspectRatio = (typeof aspectRatios)[number]

/** Resolutions of a model without configured ones. */
export const defaultResolutions: readonly Resolution[] = ['480p', '720p']

/** Width and height of 16:9, and the side of 1:1. */
const table: Record<Resolution, readonly [width: number, height: number, side: number]> = {
  '480p': [832, 480, 624],
  '720p': [1280, 720, 960],
  '1080p': [1920, 1088, 1440],
}
export function sizeOf(resolution: Resolution, ratio: AspectRatio): Size {
  const [width, height, side] = table[resolution]
  if (ratio === '1:1') return { width: side, height: side }
  return ratio === '16:9' ? { width, height } : { width: height, height: width }
}

/** Names of image sizes in fal's API. */
const named = {
  square_hd: { width: 1024, height: 1024 },
  square: { width: 512, height: 512 },
  portrait_4_3: { width: 768, height: 1024 },
  portrait_16_9: { width: 576, height: 1024 },
  landscape_4_3: { width: 1024, height: 768 },
  landscape_16_9: { width: 1024, height: 576 },
} as const satisfies Record<string, Size>
export type ImageSize = keyof typeof named
export const imageSizes = Object.keys(named) as [ImageSize, ...ImageSize[]]
export const imageSize = (name: ImageSize): Size => named[name]

const minSide = 64
const maxSide = 2048
const whole = (pixels: number): number => Math.min(maxSide, Math.max(minSide, 16 * Math.round(pixels / 16)))

/** Returns the nearest size that a model can generate. */
export const rounded = ({ width, height }: Size): Size => ({ width: whole(width), height: whole(height) })

/** Returns the size of an input image, scaled down if it is too large. */
export function sizeLike({ width, height }: Size): Size {
  const scale = Math.min(1, maxSide / Math.max(width, height))
  return rounded({ width: width * scale, height: height * scale })
}

/** Returns the aspect ratio nearest to that of an image. */
export function ratioLike({ width, height }: Size): AspectRatio {
  const distance = (ratio: AspectRatio) => {
    const [across, down] = ratio.split(':').map(Number) as [number, number]
    return Math.abs(Math.log(width / height / (across / down)))
  }
  return aspectRatios.toSorted((a, b) => distance(a) - distance(b))[0]!
}
