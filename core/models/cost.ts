import type { Usage } from '../store/store.ts'
import type { Model } from './model.ts'

/**
 * What a use costs, in millionths of the currency unit, rounded up. The configuration states prices in currency units
 * for a million tokens, which is the same number as millionths for one token.
 */
export const costOf = (price: Model['price'], usage: Usage): number =>
  Math.ceil(usage.inputTokens * price.input_per_million_tokens + usage.outputTokens * price.output_per_million_tokens)
