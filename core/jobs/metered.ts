import type { Usage } from '../store/store.ts'

/**
 * A whole number for billing. An engine's figures are untrusted: NaN becomes 0, negative and fractional numbers are
 * corrected.
 */
export const metered = (amount: number): number =>
  Number.isFinite(amount) ? Math.min(Math.max(0, Math.round(amount)), Number.MAX_SAFE_INTEGER) : 0

export const meteredUsage = ({ inputTokens, outputTokens }: Usage): Usage => ({
  inputTokens: metered(inputTokens),
  outputTokens: metered(outputTokens),
})
