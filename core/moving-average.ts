/**
 * Returns the exponential moving average after one more value; it is null before the first. The newest value has a weight
 * of one fifth, so that an early cold start soon stops counting and one slow request changes little.
 */
export const movingAverage = (average: number | null, value: number): number =>
  average === null ? value : average + (value - average) / 5
