/**
 * The exponential moving average after one more value; null before the first. The newest value has a weight of one
 * fifth, so that a cold start long ago is forgotten and one slow request changes little.
 */
export const movingAverage = (average: number | null, value: number): number =>
  average === null ? value : average + (value - average) / 5
