import type { ImageRules } from '../cpu/image-work.ts'

/** Limits of images in requests. Engines never get the original file. */
export const imageRules = {
  formats: ['jpeg', 'png'],
  maxBytes: 10 << 20,
  maxPixels: 40_000_000,
  maxSide: 8192,
} as const

/** The same, with WebP: the OpenAI-compatible image routes take it, the routes under /slug do not. */
export const webpRules: ImageRules = { ...imageRules, formats: [...imageRules.formats, 'webp'] }
