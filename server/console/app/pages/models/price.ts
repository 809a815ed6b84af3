import type { Schema } from '../../api/schema.ts'
import { costText } from '../../components/format.ts'
import { modelsText } from '../../text/models.ts'

const kinds = Object.entries(modelsText.prices) as [keyof typeof modelsText.prices, string][]

/** What the use of a model costs: `0.5 USD for a million input tokens`. Empty if it costs nothing. */
export const priceTexts = (price: Schema<'ModelPrice'> | null): string[] =>
  price === null
    ? []
    : kinds.flatMap(([kind, what]) => (price[kind] > 0 ? [`${costText(price[kind], price.currency)} ${what}`] : []))
