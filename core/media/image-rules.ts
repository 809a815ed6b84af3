/** Limits of images in requests. Engines never get the original file. */
export const imageRules = {
  formats: ['jpeg', 'png'],
  maxBytes: 10 << 20,
  maxPixels: 40_000_000,
  maxSide: 8192,
} as const
