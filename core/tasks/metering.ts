import type { Model } from '../models/model.ts'
import type { Usage } from '../store/store.ts'
import type { Metering } from './task.ts'

/**
 * Returns the cost of a usage in millionths of the currency unit, rounded up. The configuration has prices in currency
 * units per million tokens, which is the same number as millionths per token.
 */
const costOf = (price: Model['price'], usage: Usage): number =>
  Math.ceil(usage.inputTokens * price.input_per_million_tokens + usage.outputTokens * price.output_per_million_tokens)

/** Meters a task in tokens, as the engine counts them. All jobs count as equal work. */
export const tokens: Metering = { unit: 'tokens', cost: costOf, work: () => 1 }

/** Meters a task in characters, at the price of input tokens. */
export const characters: Metering = { ...tokens, unit: 'characters' }
