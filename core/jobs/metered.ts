import type { Usage } from '../store/store.ts'

/**
 * A whole number for billing. An engine's figures are untrusted: NaN becomes 0, negative and fractional numbers are
 * corrected.
 */
export const metered = (amount: number): number =>
  Number.isFinite(amount) ? Math.min(Math.max(0, Math.round(amount)), Number.MAX_SAFE_INTEGER) : 0

export const meteredUsage = (usage: Usage): Usage => ({
  inputTokens: metered(usage.inputTokens),
  cachedTokens: metered(usage.cachedTokens ?? 0),
  outputTokens: metered(usage.outputTokens),
  reasoningTokens: metered(usage.reasoningTokens ?? 0),
  images: metered(usage.images ?? 0),
  videoMs: metered(usage.videoMs ?? 0),
  audioMs: metered(usage.audioMs ?? 0),
  characters: metered(usage.characters ?? 0),
  documents: metered(usage.documents ?? 0),
  gpuMs: metered(usage.gpuMs ?? 0),
  energyMj: usage.energyMj == null ? null : metered(usage.energyMj),
})
