/**
 * The booked share of the main memory as an option of vLLM and SGLang, whose names speak of GPUs. Rounded down to a
 * ten-thousandth, 0.1 GB of a terabyte.
 */
export const shareOfMainMemory = (share: number): string =>
  String(Math.floor(Math.min(0.95, Math.max(0.0001, share)) * 10_000) / 10_000)
