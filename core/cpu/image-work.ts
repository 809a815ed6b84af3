import { readFileSync, statSync } from 'node:fs'
import type { Metadata, Sharp } from 'sharp'
import { loadSharp } from '../assets.ts'
import { Failure } from '../failure.ts'
import { type ImageFormat, imageKindOf, scansOf } from './image-kind.ts'

/** Limits of an image. */
export interface ImageRules {
  formats: readonly ImageFormat[]
  /** Size of the file. */
  maxBytes: number
  /** Width times height. */
  maxPixels: number
  /** Pixels of the longer side. */
  maxSide: number
}

export interface ImageFacts {
  format: ImageFormat
  /** Pixels after rotation by the EXIF orientation. */
  width: number
  height: number
}

/** Bytes, or the path of one of our own files. */
export type ImageSource = Uint8Array | string

/** Formats that can be written. */
export type WrittenFormat = 'jpeg' | 'png' | 'webp'

/** What the image is used as. In an `alpha mask` the transparent pixels are selected, in a `mask` the white ones. */
export type ReencodeAs = 'image' | 'mask' | 'alpha mask'

export interface Encoding {
  format: WrittenFormat
  /** 0 to 100. */
  quality: number
}

/** A re-encoded image: upright, in sRGB, without metadata or other data of the original file. */
export interface ReencodedImage extends ImageFacts {
  format: 'jpeg' | 'png'
  bytes: Uint8Array<ArrayBuffer>
}

const decodeSeconds = 20
/** Common programs write ten or twenty. */
const maxScans = 100
let loaded: ReturnType<typeof loadSharp> | undefined

/** Returns sharp with one core per image, no cache, and only the decoders of `imageFormats`. */
function sharp(bytes: Buffer, maxPixels: number): Sharp {
  if (!loaded) {
    loaded = loadSharp()
    loaded.concurrency(1)
    loaded.cache(false)
    loaded.block({ operation: ['VipsForeignLoad'] })
    const allowed = ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif'].flatMap(name =>
      ['Buffer', 'File'].map(from => `VipsForeignLoad${name}${from}`),
    )
    loaded.unblock({ operation: allowed })
  }
  return loaded(bytes, { limitInputPixels: maxPixels, failOn: 'error', sequentialRead: true }).timeout({
    seconds: decodeSeconds,
  })
}

/** Decodes every pixel of an image and returns its format and size. Throws Failure `invalid_image`. */
export async function checkImage(source: ImageSource, rules: ImageRules): Promise<ImageFacts> {
  const { bytes, facts } = await head(source, rules)
  // Averaging reads each pixel and keeps few lines in memory; a damaged or cut file fails where it is damaged.
  const average = sharp(bytes, rules.maxPixels).resize(1, 1, { fit: 'fill', kernel: 'linear', fastShrinkOnLoad: false })
  await decoded(average.raw().toBuffer())
  return facts
}

/**
 * Re-encodes an image, so that engines read only bytes that we wrote. JPEG stays JPEG (quality 95, the same chroma
 * subsampling); lossy AVIF and WebP without transparency become JPEG, because as PNG they would be ten times as large.
 * Others become PNG. A mask becomes a grey PNG, in which transparent pixels are black. In an alpha mask transparent
 * pixels are white, whatever their colour.
 */
export async function reencodeImage(source: ImageSource, rules: ImageRules, as: ReencodeAs): Promise<ReencodedImage> {
  const { bytes, hasAlpha, lossy, chroma } = await head(source, rules)
  if (as === 'alpha mask' && !hasAlpha)
    throw refused(
      "has no transparent pixels, which mark the area to change; if white marks it, send 'mask_mode': 'luma'",
    )
  const upright = sharp(bytes, rules.maxPixels).autoOrient()
  const format = as === 'image' && lossy && !hasAlpha ? 'jpeg' : 'png'
  const shaped =
    as === 'mask'
      ? upright.flatten({ background: 'black' }).toColourspace('b-w')
      : as === 'alpha mask'
        ? upright.negate({ alpha: true }).extractChannel('alpha').toColourspace('b-w')
        : upright
  const written =
    format === 'jpeg'
      ? // A second pass to choose the codes takes three times as long and saves a tenth of the size.
        shaped.jpeg({ quality: 95, chromaSubsampling: chroma, optimiseCoding: false })
      : shaped.png({ compressionLevel: 3, adaptiveFiltering: false })
  const { data, info } = await decoded(written.toBuffer({ resolveWithObject: true }))
  // A copy, because memory of the library cannot be transferred to another thread.
  return { bytes: new Uint8Array(data), format, width: info.width, height: info.height }
}

/** Returns a re-encoded image as a data: URL, in ASCII. */
export async function imageDataUrl(source: ImageSource, rules: ImageRules): Promise<Uint8Array<ArrayBuffer>> {
  const { bytes, format } = await reencodeImage(source, rules, 'image')
  return new TextEncoder().encode(`data:image/${format};base64,${Buffer.from(bytes.buffer).toString('base64')}`)
}

/**
 * Returns a mask for OpenAI's image edits: an RGBA image of the size of `image`, transparent where `mask` is white. Its
 * colours are those of `mask`, for servers that read the brightness instead, such as sd-server.
 */
export async function alphaMaskOf(mask: ImageSource, image: ImageSource, rules: ImageRules): Promise<Uint8Array> {
  const { facts } = await head(image, rules)
  const { bytes } = await head(mask, rules)
  const size = { width: facts.width, height: facts.height }
  const grey = sharp(bytes, rules.maxPixels)
    .toColourspace('b-w')
    .removeAlpha()
    .resize({ ...size, fit: 'fill' })
  const { data } = await decoded(grey.raw().toBuffer({ resolveWithObject: true }))
  const pixels = new Uint8Array(4 * data.length)
  for (let from = 0, to = 0; from < data.length; from++) {
    const white = data[from]!
    pixels[to++] = white
    pixels[to++] = white
    pixels[to++] = white
    pixels[to++] = 255 - white
  }
  const made = loadSharp()(pixels, { raw: { ...size, channels: 4 } }).png({ compressionLevel: 3 })
  return new Uint8Array(await decoded(made.toBuffer()))
}

/** Returns an image in another format with a quality from 0 to 100; PNG has none. Transparency becomes black in JPEG. */
export async function encodeImage(
  source: ImageSource,
  rules: ImageRules,
  { format, quality }: Encoding,
): Promise<Uint8Array> {
  const { bytes } = await head(source, rules)
  const image = sharp(bytes, rules.maxPixels).autoOrient()
  const written =
    format === 'png'
      ? image.png({ compressionLevel: 3 })
      : format === 'jpeg'
        ? image.jpeg({ quality: Math.max(1, quality) })
        : image.webp({ quality: Math.max(1, quality) })
  return new Uint8Array(await decoded(written.toBuffer()))
}

/** Returns a WebP with sides of at most `longestSide` pixels; small images are not enlarged. */
export async function thumbnailOf(source: ImageSource, rules: ImageRules, longestSide: number): Promise<Uint8Array> {
  const { bytes } = await head(source, rules)
  const size = { width: longestSide, height: longestSide, fit: 'inside', withoutEnlargement: true } as const
  const small = sharp(bytes, rules.maxPixels).autoOrient().resize(size).webp({ quality: 80 })
  return new Uint8Array(await decoded(small.toBuffer()))
}

/** Checks the header of the file before any pixel is decoded. Most invalid or malicious files are refused here. */
async function head(
  source: ImageSource,
  rules: ImageRules,
): Promise<{ bytes: Buffer; facts: ImageFacts; hasAlpha: boolean; lossy: boolean; chroma: '4:2:0' | '4:4:4' }> {
  const size = typeof source === 'string' ? statSync(source).size : source.byteLength
  if (size > rules.maxBytes) throw refused(`is larger than ${Math.floor(rules.maxBytes / 1_048_576)} MB`)
  const bytes =
    typeof source === 'string' ? readFileSync(source) : Buffer.from(source.buffer, source.byteOffset, source.byteLength)
  const kind = imageKindOf(bytes)
  if ('other' in kind) throw refused(`is ${kind.other}; it must be ${namesOf(rules.formats)}`)
  if (!rules.formats.includes(kind.format))
    throw refused(`is ${formatNames[kind.format]}; it must be ${namesOf(rules.formats)}`)
  if (kind.animated) throw refused('has several frames; send one of them')
  if (kind.format === 'jpeg' && scansOf(bytes, maxScans) > maxScans) throw refused(`has more than ${maxScans} scans`)
  const metadata = await decoded(sharp(bytes, Number.MAX_SAFE_INTEGER).metadata())
  // The library has one decoder for HEIF, of which it can decode the codec of AVIF only.
  const format = metadata.format === 'heif' && metadata.compression === 'av1' ? 'avif' : metadata.format
  if (format !== kind.format) throw refused('has another format than its first bytes indicate')
  if ((metadata.pages ?? 1) > 1) throw refused('has several frames; send one of them')
  const { width, height } = uprightSize(metadata)
  if (width > rules.maxSide || height > rules.maxSide)
    throw refused(`is ${width} × ${height} pixels; no side may be longer than ${rules.maxSide}`)
  if (width * height > rules.maxPixels)
    throw refused(
      `is ${width} × ${height} pixels; it may have ${Math.floor(rules.maxPixels / 1_000_000)} million pixels at most`,
    )
  const lossy = kind.format === 'jpeg' || kind.format === 'avif' || (kind.format === 'webp' && isLossyWebp(bytes))
  const chroma = metadata.chromaSubsampling === '4:2:0' ? '4:2:0' : '4:4:4'
  return { bytes, facts: { format: kind.format, width, height }, hasAlpha: metadata.hasAlpha, lossy, chroma }
}

const formatNames: Record<ImageFormat, string> = {
  jpeg: 'a JPEG',
  png: 'a PNG',
  webp: 'a WebP',
  gif: 'a GIF',
  avif: 'an AVIF',
}
const namesOf = (formats: readonly ImageFormat[]): string =>
  new Intl.ListFormat('en', { type: 'disjunction' }).format(formats.map(format => formatNames[format]))

/** The chunk with the pixels of a lossless WebP has another name. */
const isLossyWebp = (bytes: Buffer): boolean => bytes.subarray(0, 1 << 20).includes('VP8 ', 12, 'latin1')

/** With EXIF orientations from 5 on, width and height are swapped. */
const uprightSize = ({ width, height, orientation = 1 }: Metadata): { width: number; height: number } =>
  orientation >= 5 ? { width: height, height: width } : { width, height }

const refused = (what: string): Failure => new Failure('invalid_image', `The image ${what}.`)

async function decoded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new Failure('invalid_image', 'The image cannot be decoded: its file is damaged or cut short.', { cause })
  }
}
