import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ModelStatus } from './status.ts'

/** What each price is for, in the order of the table. */
const units: readonly (readonly [key: string, unit: string])[] = [
  ['input_per_million_tokens', 'a million input tokens'],
  ['cached_input_per_million_tokens', 'a million cached input tokens'],
  ['output_per_million_tokens', 'a million output tokens'],
  ['per_image', 'an image'],
  ['per_video_second', 'a second of video'],
  ['per_audio_second', 'a second of audio'],
  ['per_thousand_characters', 'a thousand characters'],
  ['per_thousand_documents', 'a thousand documents'],
  ['per_gpu_second', 'a GPU second'],
]

/** Returns the lines of one model: the model, an amount, and what it is for. */
function priceRows({ model_id, price }: Pick<ModelStatus, 'model_id' | 'price'>): string[][] {
  if (!price) return [[printable(model_id), '0', 'everything']]
  const amount = (value: number) => `${value} ${price.currency}`
  const single = units.flatMap(([key, unit]) => {
    const value = price[key]
    return typeof value === 'number' && value > 0 ? [[amount(value), unit]] : []
  })
  const images = (price.image_prices ?? []).map(({ price: each, size, quality }) => [
    amount(each),
    ['an image', size, quality && `of ${quality} quality`].filter(Boolean).join(' '),
  ])
  return [...single, ...images].map(columns => [printable(model_id), ...columns.map(printable)])
}

/** Prints what the use of each model costs. */
export const showPrices = (models: readonly ModelStatus[], terminal: Terminal): void =>
  terminal.table(['model', 'price', 'for'], models.flatMap(priceRows))
