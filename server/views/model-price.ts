import { z } from 'zod'
import type { Model } from '../../core/models/model.ts'
import { hasPrice, imageQualities } from '../../core/models/price.ts'
import { nullableString, number, string } from '../../core/schemas/fields.ts'

/** The prices of a model. */
export const ModelPrice = z
  .object({
    currency: string('ISO 4217 code of all amounts.'),
    input_per_million_tokens: number('Price of a million input tokens.'),
    cached_input_per_million_tokens: number('Price of a million input tokens from the cache.'),
    output_per_million_tokens: number('Price of a million output tokens.'),
    per_image: number('Price of an image for which `image_prices` has no entry.'),
    image_prices: z
      .array(
        z.object({
          size: nullableString('`<width>x<height>`; null for any size.'),
          quality: z.enum(imageQualities).nullable().describe('Quality that the request names; null for any.'),
          price: number('Price of such an image.'),
        }),
      )
      .describe('Prices of images by size and quality.'),
    per_video_second: number('Price of a second of video.'),
    per_audio_second: number('Price of a second of audio.'),
    per_thousand_characters: number('Price of a thousand characters that are turned into audio.'),
    per_thousand_documents: number('Price of a thousand documents or pairs.'),
    per_gpu_second: number('Price of a second of GPU time.'),
  })
  .meta({ id: 'ModelPrice', description: 'The prices of a model. What has no price costs 0.' })

/** Returns the prices as API clients read them; null for a model whose work costs nothing. */
export function priceObject({ price }: Pick<Model, 'price'>, currency: string): z.input<typeof ModelPrice> | null {
  if (!hasPrice(price)) return null
  const input = price.input_per_million_tokens ?? 0
  return {
    currency,
    input_per_million_tokens: input,
    cached_input_per_million_tokens: price.cached_input_per_million_tokens ?? input,
    output_per_million_tokens: price.output_per_million_tokens ?? 0,
    per_image: price.per_image ?? 0,
    image_prices: (price.image_prices ?? []).map(({ size = null, quality = null, price: each }) => ({
      size,
      quality,
      price: each,
    })),
    per_video_second: price.per_video_second ?? 0,
    per_audio_second: price.per_audio_second ?? 0,
    per_thousand_characters: price.per_thousand_characters ?? input / 1000,
    per_thousand_documents: price.per_thousand_documents ?? 0,
    per_gpu_second: price.per_gpu_second ?? 0,
  }
}
