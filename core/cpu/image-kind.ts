/** Image formats that can be decoded. */
export const imageFormats = ['jpeg', 'png', 'webp', 'gif', 'avif'] as const
export type ImageFormat = (typeof imageFormats)[number]

/** The format of a file by its first bytes; its name does not matter. Frames of a GIF are counted by its decoder. */
export type ImageKind = { format: ImageFormat; animated: boolean } | { other: string }

/**
 * Detects the format of an image by its content, before any decoder reads it. `other` is the common name of any other
 * format. Pure; reads at most the headers of the chunks before the pixels.
 */
export function imageKindOf(bytes: Buffer): ImageKind {
  if (bytes.length === 0) return { other: 'empty' }
  const at = (offset: number, text: string) => bytes.toString('latin1', offset, offset + text.length) === text
  if (at(0, '\xff\xd8\xff')) return { format: 'jpeg', animated: false }
  if (at(0, '\x89PNG\r\n\x1a\n')) return { format: 'png', animated: isAnimatedPng(bytes) }
  if (at(0, 'RIFF') && at(8, 'WEBP'))
    return { format: 'webp', animated: at(12, 'VP8X') && ((bytes[20] ?? 0) & 2) !== 0 }
  if (at(0, 'GIF8')) return { format: 'gif', animated: false }
  if (at(4, 'ftyp')) return ofBrands(bytes)
  const found = others.find(([offset, magic]) => at(offset, magic))
  if (found) return { other: found[2] }
  return { other: isMarkup(bytes) ? 'an SVG or another text in XML' : 'of an unknown format' }
}

const others: readonly [offset: number, magic: string, name: string][] = [
  [0, 'BM', 'a BMP'],
  [0, 'II*\0', 'a TIFF'],
  [0, 'MM\0*', 'a TIFF'],
  [0, '\0\0\x01\0', 'an ICO'],
  [0, '8BPS', 'a Photoshop document'],
  [0, '%PDF', 'a PDF'],
  [0, 'PK\x03\x04', 'a ZIP archive'],
  [0, '\x1f\x8b', 'compressed with gzip'],
  [0, '\xff\x0a', 'a JPEG XL'],
  [4, 'JXL ', 'a JPEG XL'],
  [4, 'jP  ', 'a JPEG 2000'],
  [0, '\x1aE\xdf\xa3', 'a video (Matroska or WebM)'],
]

/** Detects the format of an ISO media file by the brands in its first box: its own and the compatible ones. */
function ofBrands(bytes: Buffer): ImageKind {
  const end = Math.min(bytes.length, bytes.readUInt32BE(0), 256)
  const brands = [8, ...range(16, end - 3)].map(at => bytes.toString('latin1', at, at + 4))
  const [brand = ''] = brands
  if (/^avi[fs]$/.test(brand) || (/^m[is]f1$/.test(brand) && brands.includes('avif')))
    return { format: 'avif', animated: brand === 'avis' }
  return { other: /^(hei[cfmsx]|hev[cmsx]|m[is]f1)$/.test(brand) ? 'a HEIF or HEIC' : 'a video (MP4 or QuickTime)' }
}

/** Every fourth position from `start` on, below `end`. */
const range = (start: number, end: number): number[] =>
  Array.from({ length: Math.max(0, Math.ceil((end - start) / 4)) }, (_, at) => start + 4 * at)

const isMarkup = (bytes: Buffer): boolean =>
  /^\ufeff?\s*<(\?xml|!--|!doctype|svg|html)/i.test(bytes.toString('utf8', 0, 256))

/**
 * Counts the scans of a JPEG, up to `max` + 1. Decoding each scan visits the whole image, and a small file can have a
 * thousand of them. The marker does not occur in compressed data.
 */
export function scansOf(jpeg: Buffer, max: number): number {
  let scans = 0
  for (let at = jpeg.indexOf('\xff\xda', 2, 'latin1'); at >= 0; at = jpeg.indexOf('\xff\xda', at + 2, 'latin1'))
    if (++scans > max) break
  return scans
}

/** The chunk that marks an animation comes before the pixels. */
function isAnimatedPng(bytes: Buffer): boolean {
  for (let at = 8; at + 8 <= bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const type = bytes.toString('latin1', at + 4, at + 8)
    if (type === 'acTL') return true
    if (type === 'IDAT' || type === 'IEND') return false
  }
  return false
}
