import { expect, test } from 'vitest'
import { costOf, hasPrice, type Price, type PricedImage, priceSchema } from '../../../core/models/price.ts'
import { noUsage, type Usage } from '../../../core/usage.ts'

const bySize: Price = {
  per_image: 0.04,
  image_prices: [
    { size: '1024x1024', price: 0.05 },
    { quality: 'high', price: 0.06 },
    { size: '1024x1024', quality: 'high', price: 0.08 },
  ],
}

test.each<[what: string, Price, Partial<Usage>, cost: number, PricedImage?]>([
  ['nothing without a price', {}, { inputTokens: 1e6, images: 9, gpuMs: 9e9 }, 0],
  ['a million input tokens', { input_per_million_tokens: 0.5 }, { inputTokens: 1e6 }, 500_000],
  ['one token, rounded up', { input_per_million_tokens: 0.5 }, { inputTokens: 1 }, 1],
  ['three tokens of 0.4 millionths, rounded once', { input_per_million_tokens: 0.4 }, { inputTokens: 3 }, 2],
  [
    'input and output, rounded once',
    { input_per_million_tokens: 0.3, output_per_million_tokens: 0.3 },
    { inputTokens: 1, outputTokens: 1 },
    1,
  ],
  ['cached tokens at the price of others', { input_per_million_tokens: 10 }, { inputTokens: 10, cachedTokens: 8 }, 100],
  [
    'cached tokens at their own price',
    { input_per_million_tokens: 10, cached_input_per_million_tokens: 1 },
    { inputTokens: 10, cachedTokens: 8 },
    28,
  ],
  [
    'free cached tokens',
    { input_per_million_tokens: 10, cached_input_per_million_tokens: 0 },
    { inputTokens: 10, cachedTokens: 8 },
    20,
  ],
  [
    'no more cached tokens than there are',
    { input_per_million_tokens: 10, cached_input_per_million_tokens: 1 },
    { inputTokens: 2, cachedTokens: 8 },
    2,
  ],
  ['reasoning tokens once', { output_per_million_tokens: 2 }, { outputTokens: 100, reasoningTokens: 90 }, 200],
  ['images', bySize, { images: 3 }, 120_000, { size: '512x512' }],
  ['images of a size', bySize, { images: 1 }, 50_000, { size: '1024x1024' }],
  ['images of a quality', bySize, { images: 1 }, 60_000, { size: '512x512', quality: 'high' }],
  ['images of a size and a quality', bySize, { images: 1 }, 80_000, { size: '1024x1024', quality: 'high' }],
  ['images of a size and another quality', bySize, { images: 1 }, 50_000, { size: '1024x1024', quality: 'low' }],
  ['a video of 5.0625 s', { per_video_second: 0.1 }, { videoMs: 5_063 }, 506_300],
  ['a minute of audio', { per_audio_second: 0.0001 }, { audioMs: 60_000 }, 6_000],
  ['characters', { per_thousand_characters: 0.015 }, { characters: 1 }, 15],
  ['characters at the price of input tokens', { input_per_million_tokens: 15 }, { characters: 1_000 }, 15_000],
  ['documents', { per_thousand_documents: 2 }, { documents: 10 }, 20_000],
  ['GPU time', { per_gpu_second: 0.0006 }, { gpuMs: 1_500 }, 900],
  [
    'a sum that no double holds',
    { input_per_million_tokens: 999_999.999999, per_gpu_second: 1 },
    { inputTokens: 99_999_999, gpuMs: 1 },
    99_999_999_000_901,
  ],
])('%s', (_, price, usage, cost, image) => {
  expect(priceSchema().parse(price)).toEqual(price)
  expect(costOf(price, { ...noUsage, ...usage }, image)).toBe(cost)
})

test('ten thousand results of one token cost what they cost each', () => {
  const price = { input_per_million_tokens: 0.15 }
  let sum = 0
  for (let at = 0; at < 10_000; at++) sum += costOf(price, { ...noUsage, inputTokens: 7 })
  expect(sum).toBe(10_000 * 2)
})

test.each<[Price, boolean]>([
  [{}, false],
  [{ input_per_million_tokens: 0 }, false],
  [{ per_gpu_second: 0.1 }, true],
  [{ image_prices: [{ size: '64x64', price: 1 }] }, true],
])('%j has a price: %s', (price, has) => expect(hasPrice(price)).toBe(has))

test.each([{ per_image: -1 }, { per_images: 1 }, { image_prices: [{ size: '64', price: 1 }] }])(
  'the price %j is refused',
  price => expect(priceSchema().safeParse(price).success).toBe(false),
)
