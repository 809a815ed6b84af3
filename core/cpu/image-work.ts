import { readFileSync, statSync } from 'node:fs'
import type { Metadata, Sharp } from 'sharp'
import { loadSharp } from '../assets.ts'
import { Failure } from '../failure.ts'
import { type ImageFormat, imageKindOf, scansOf } from './image-kind.ts'

/** What a picture may be. */
export interface ImageRules {
  formats: readonly ImageFormat[]
  /** Of the file. */
  maxBytes: number
  /** Width times height. */
  maxPixels: number
  /** Of width and height. */
  maxSide: number
}

export interface ImageFacts {
  format: ImageFormat
  /** Pixels, as it is seen: turned the way its EXIF data says. */
  width: number
  height: number
}

/** Bytes, or the path of a file of ours. */
export type ImageSource = Uint8Array | string

/** As what it is drawn anew. An `alpha mask` tells by what is transparent in it, a `mask` by what is white. */
export type ReencodeAs = 'image' | 'mask' | 'alpha mask'

/** A picture made anew: upright, in sRGB, without metadata and whatever else lay in the file. */
export interface ReencodedImage extends ImageFacts {
  bytes: Uint8Array
}

const decodeSeconds = 20
/** Programs write ten or twenty. */
const maxScans = 100
let loaded: ReturnType<typeof loadSharp> | undefined

/** One core a picture and nothing kept from one to the next; of all decoders only those of the three formats. */
function sharp(bytes: Buffer, maxPixels: number): Sharp {
  if (!loaded) {
    loaded = loadSharp()
    loaded.concurrency(1)
    loaded.cache(false)
    loaded.block({ operation: ['VipsForeignLoad'] })
    const left = ['Jpeg', 'Png', 'Webp'].flatMap(name =>
      ['Buffer', 'File'].map(from => `VipsForeignLoad${name}${from}`),
    )
    loaded.unblock({ operation: left })
  }
  return loaded(bytes, { limitInputPixels: maxPixels, failOn: 'error', sequentialRead: true }).timeout({
    seconds: decodeSeconds,
  })
}

/** Format and size of a picture of which every pixel could be decoded. Throws Failure `invalid_image`. */
export async function checkImage(source: ImageSource, rules: ImageRules): Promise<ImageFacts> {
  const { bytes, facts } = await head(source, rules)
  // Averaging touches each pixel and holds few lines; a cut or damaged file fails at the place where it is.
  const average = sharp(bytes, rules.maxPixels).resize(1, 1, { fit: 'fill', kernel: 'linear', fastShrinkOnLoad: false })
  await decoded(average.raw().toBuffer())
  return facts
}

/**
 * Draws a picture anew, so that whoever gets it reads what we wrote: JPEG stays JPEG (quality 95, full colour), the
 * others become PNG. A mask becomes a PNG of greys; what is transparent in it counts as black, and of an alpha mask as
 * white, whatever its colours are.
 */
export async function reencodeImage(source: ImageSource, rules: ImageRules, as: ReencodeAs): Promise<ReencodedImage> {
  const { bytes, facts, hasAlpha } = await head(source, rules)
  if (as === 'alpha mask' && !hasAlpha)
    throw refused(
      "has nothing transparent in it, and in a mask that is what is made anew; where white is meant, send 'mask_mode': 'luma'",
    )
  const upright = sharp(bytes, rules.maxPixels).autoOrient()
  const format = as === 'image' && facts.format === 'jpeg' ? 'jpeg' : 'png'
  const shaped =
    as === 'mask'
      ? upright.flatten({ background: 'black' }).toColourspace('b-w')
      : as === 'alpha mask'
        ? upright.negate({ alpha: true }).extractChannel('alpha').toColourspace('b-w')
        : upright
  const written =
    format === 'jpeg'
      ? shaped.jpeg({ quality: 95, chromaSubsampling: '4:4:4' })
      : shaped.png({ compressionLevel: 3, adaptiveFiltering: false })
  const { data, info } = await decoded(written.toBuffer({ resolveWithObject: true }))
  // A copy, because memory of the library cannot be handed to another thread.
  return { bytes: new Uint8Array(data), format, width: info.width, height: info.height }
}

/** A small WebP of it, no side longer than that and none longer than it was. */
export async function thumbnailOf(source: ImageSource, rules: ImageRules, longestSide: number): Promise<Uint8Array> {
  const { bytes } = await head(source, rules)
  const size = { width: longestSide, height: longestSide, fit: 'inside', withoutEnlargement: true } as const
  const small = sharp(bytes, rules.maxPixels).autoOrient().resize(size).webp({ quality: 80 })
  return new Uint8Array(await decoded(small.toBuffer()))
}

/** What the head of the file says, before a pixel is decoded: most of what is wrong or meant badly ends here. */
async function head(
  source: ImageSource,
  rules: ImageRules,
): Promise<{ bytes: Buffer; facts: ImageFacts; hasAlpha: boolean }> {
  const size = typeof source === 'string' ? statSync(source).size : source.byteLength
  if (size > rules.maxBytes) throw refused(`is larger than ${Math.floor(rules.maxBytes / 1_048_576)} MB`)
  const bytes =
    typeof source === 'string' ? readFileSync(source) : Buffer.from(source.buffer, source.byteOffset, source.byteLength)
  const kind = imageKindOf(bytes)
  if ('other' in kind) throw refused(`is ${kind.other}; it must be ${namesOf(rules.formats)}`)
  if (!rules.formats.includes(kind.format))
    throw refused(`is a ${formatNames[kind.format]}; it must be ${namesOf(rules.formats)}`)
  if (kind.animated) throw refused('has several frames; send one of them')
  if (kind.format === 'jpeg' && scansOf(bytes, maxScans) > maxScans) throw refused(`has more than ${maxScans} scans`)
  const metadata = await decoded(sharp(bytes, Number.MAX_SAFE_INTEGER).metadata())
  if (metadata.format !== kind.format) throw refused('is not what its first bytes say')
  const { width, height } = seenSize(metadata)
  if (width > rules.maxSide || height > rules.maxSide)
    throw refused(`is ${width} × ${height} pixels; no side may be longer than ${rules.maxSide}`)
  if (width * height > rules.maxPixels)
    throw refused(
      `is ${width} × ${height} pixels; it may have ${Math.floor(rules.maxPixels / 1_000_000)} million at most`,
    )
  return { bytes, facts: { format: kind.format, width, height }, hasAlpha: metadata.hasAlpha }
}

const formatNames: Record<ImageFormat, string> = { jpeg: 'JPEG', png: 'PNG', webp: 'WebP' }
const namesOf = (formats: readonly ImageFormat[]): string =>
  new Intl.ListFormat('en', { type: 'disjunction' }).format(formats.map(format => `a ${formatNames[format]}`))

/** EXIF orientations from 5 on lie on their side. */
const seenSize = ({ width, height, orientation = 1 }: Metadata): { width: number; height: number } =>
  orientation >= 5 ? { width: height, height: width } : { width, height }

const refused = (what: string): Failure => new Failure('invalid_image', `The picture ${what}.`)

async function decoded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new Failure('invalid_image', 'The picture cannot be decoded: its file is damaged or cut short.', { cause })
  }
}
