import { z } from 'zod'
import { tasksBy } from '../schemas/task.ts'
import type { Measure, Usage } from '../usage.ts'

const imageSize = /^[1-9]\d{0,4}x[1-9]\d{0,4}$/
export const imageQualities = ['low', 'medium', 'high'] as const

/** The size and quality of the images of one job, on which their price may depend. */
export interface PricedImage {
  /** `<width>x<height>` in pixels. */
  size: string
  /** Undefined if the request named none. */
  quality?: (typeof imageQualities)[number] | undefined
}

const amount = (description: string, unit: string, example: number, absent = 'nothing') =>
  z
    .number()
    .min(0)
    .max(1_000_000)
    .optional()
    .meta({ description, unit: `currency units ${unit}`, example, absent })

/** A model with a price by size and quality. */
const pricedBySize = {
  id: 'infer/demo',
  engine: 'demo',
  tasks: tasksBy('create-image'),
  price: { image_prices: [{ size: '1024x1024', quality: 'high', price: 0.08 }] },
}

const imagePrice = () =>
  z.strictObject({
    size: z.string().regex(imageSize, 'Such as 1024x1024.').optional().meta({
      description: 'Width and height of the images in pixels.',
      example: '1024x1024',
      with: pricedBySize,
      absent: 'any size',
    }),
    quality: z.enum(imageQualities).optional().meta({
      description: 'Quality that the request names.',
      example: 'high',
      with: pricedBySize,
      absent: 'any quality',
    }),
    price: z.number().min(0).max(1_000_000).meta({
      description: 'Price of such an image.',
      unit: 'currency units per image',
      example: 0.08,
      with: pricedBySize,
    }),
  })

const priceFields = () => ({
  input_per_million_tokens: amount('Price of a million input tokens.', 'per million tokens', 0.5),
  cached_input_per_million_tokens: amount(
    'Price of a million input tokens that the engine reuses from its cache.',
    'per million tokens',
    0.05,
    'that of input tokens',
  ),
  output_per_million_tokens: amount('Price of a million output tokens, reasoning included.', 'per million tokens', 1.5),
  per_image: amount('Price of an image.', 'per image', 0.04),
  image_prices: z
    .array(imagePrice())
    .max(100)
    .optional()
    .meta({
      description:
        'Prices of images by size and quality. The entry with the size and the quality of the image applies, then one with its size, then one with its quality, then `per_image`.',
      example: [{ size: '1024x1024', quality: 'high', price: 0.08 }],
      absent: 'the price of every image is `per_image`',
    }),
  per_video_second: amount('Price of a second of video.', 'per second', 0.1),
  per_audio_second: amount('Price of a second of audio that is written or transcribed.', 'per second', 0.0001),
  per_thousand_characters: amount(
    'Price of a thousand characters that are turned into audio.',
    'per thousand characters',
    0.015,
    'a thousandth of `input_per_million_tokens`',
  ),
  per_thousand_documents: amount(
    'Price of a thousand documents that are ranked, or pairs that are scored.',
    'per thousand documents',
    2,
  ),
  per_gpu_second: amount(
    'Price of a second on all slots of an engine with one device; less for fewer slots, more for more devices.',
    'per GPU second',
    0.0006,
  ),
})

/** Prices of a model, in currency units. An absent price is 0, unless its description says otherwise. */
export const priceSchema = () => z.strictObject(priceFields())
export type Price = z.output<ReturnType<typeof priceSchema>>

/** Millionths of the currency unit for a million of each measure, as whole numbers. */
interface Rates {
  perMillion: readonly { measure: Measure; rate: number }[]
  /** Of input tokens that were in the cache. */
  cached: number
  /** For a million images, the most special first. */
  images: readonly { size?: string | undefined; quality?: string | undefined; rate: number }[]
}

/** Currency units for `count` of something become millionths for a million of it. */
const rate = (price: number | undefined, count: number): number => Math.round(((price ?? 0) * 1e6 * 1e6) / count)

const known = new WeakMap<Price, Rates>()

function ratesOf(price: Price): Rates {
  let rates = known.get(price)
  if (rates) return rates
  const input = rate(price.input_per_million_tokens, 1e6)
  const all: [Measure, number][] = [
    ['inputTokens', input],
    ['outputTokens', rate(price.output_per_million_tokens, 1e6)],
    ['videoMs', rate(price.per_video_second, 1000)],
    ['audioMs', rate(price.per_audio_second, 1000)],
    ['characters', rate(price.per_thousand_characters ?? (price.input_per_million_tokens ?? 0) / 1000, 1000)],
    ['documents', rate(price.per_thousand_documents, 1000)],
    ['gpuMs', rate(price.per_gpu_second, 1000)],
  ]
  const special = ({ size, quality }: { size?: unknown; quality?: unknown }) =>
    (size === undefined ? 0 : 2) + (quality === undefined ? 0 : 1)
  rates = {
    perMillion: all.filter(([, each]) => each > 0).map(([measure, rate]) => ({ measure, rate })),
    cached:
      price.cached_input_per_million_tokens === undefined ? input : rate(price.cached_input_per_million_tokens, 1e6),
    images: [...(price.image_prices ?? []), { price: price.per_image ?? 0 }]
      .map(one => ({ ...one, rate: rate(one.price, 1) }))
      .toSorted((a, b) => special(b) - special(a)),
  }
  known.set(price, rates)
  return rates
}

/** Whether work of the model can cost anything. */
export function hasPrice(price: Price): boolean {
  const { perMillion, cached, images } = ratesOf(price)
  return perMillion.length > 0 || cached > 0 || images.some(image => image.rate > 0)
}

function imageRate({ images }: Rates, { size, quality }: Partial<PricedImage>): number {
  const found = images.find(image => (image.size ?? size) === size && (image.quality ?? quality) === quality)
  return found?.rate ?? 0
}

const anyImage: Partial<PricedImage> = {}

/** Calls back with each whole number of what was used, and its rate. */
function eachAmount(
  rates: Rates,
  usage: Usage,
  image: Partial<PricedImage>,
  add: (count: number, rate: number) => void,
): void {
  const cachedTokens = Math.min(usage.cachedTokens ?? 0, usage.inputTokens)
  for (const { measure, rate } of rates.perMillion)
    add(Math.ceil(measure === 'inputTokens' ? usage.inputTokens - cachedTokens : (usage[measure] ?? 0)), rate)
  if (cachedTokens > 0) add(Math.ceil(cachedTokens), rates.cached)
  if (usage.images) add(Math.ceil(usage.images), imageRate(rates, image))
}

/**
 * Returns the cost of a usage in millionths of the currency unit. Computed in whole numbers and rounded up once, so that
 * single tokens do not round to nothing and large sums are exact.
 */
export function costOf(price: Price, usage: Usage, image: Partial<PricedImage> = anyImage): number {
  const rates = ratesOf(price)
  let sum = 0
  // Without a list of the amounts: every request is priced twice.
  eachAmount(rates, usage, image, (count, rate) => (sum += count * rate))
  if (sum === 0) return 0
  if (sum <= Number.MAX_SAFE_INTEGER) return (sum - (sum % 1e6)) / 1e6 + (sum % 1e6 > 0 ? 1 : 0)
  let exact = 0n
  eachAmount(rates, usage, image, (count, rate) => (exact += BigInt(count) * BigInt(rate)))
  return Math.min(Number((exact + 999_999n) / 1_000_000n), Number.MAX_SAFE_INTEGER)
}

/** An amount of the currency unit in millionths, at least one; null and undefined stay. */
export const millionthsOf = <Amount extends number | null>(amount: Amount) =>
  (amount === null ? null : Math.max(1, Math.round(amount * 1e6))) as Amount
