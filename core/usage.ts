/**
 * What a task has used. An absent measure is 0; absent or null energy is unknown. Whole numbers from 0, as
 * `meteredUsage` makes them.
 */
export interface Usage {
  inputTokens: number
  /** The part of the input tokens that the engine has reused from its cache. */
  cachedTokens?: number
  outputTokens: number
  /** The part of the output tokens that is reasoning. */
  reasoningTokens?: number
  /** Images written. */
  images?: number
  /** Length of the videos written, milliseconds. */
  videoMs?: number
  /** Length of the audio written or transcribed, milliseconds. */
  audioMs?: number
  /** Characters turned into audio. */
  characters?: number
  /** Documents ranked and pairs scored. */
  documents?: number
  /** Time on a slot × devices of the engine ÷ its slots, milliseconds. */
  gpuMs?: number
  /** Energy of the devices in that time, millijoules; null if a device does not report its power. */
  energyMj?: number | null
}

/** Every measure of `Usage`, in the order of its columns. */
export const measures = [
  'inputTokens',
  'cachedTokens',
  'outputTokens',
  'reasoningTokens',
  'images',
  'videoMs',
  'audioMs',
  'characters',
  'documents',
  'gpuMs',
  'energyMj',
] as const satisfies readonly (keyof Usage)[]
export type Measure = (typeof measures)[number]

/** The usage of work that has used nothing. */
export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 }

/**
 * A whole number for billing. An engine's figures are untrusted: NaN becomes 0, negative and fractional numbers are
 * corrected.
 */
export const metered = (amount: number): number =>
  Number.isFinite(amount) ? Math.min(Math.max(0, Math.round(amount)), Number.MAX_SAFE_INTEGER) : 0

/** A usage of whole numbers, as it is billed. */
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
