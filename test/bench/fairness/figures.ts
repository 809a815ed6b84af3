/** Prints a figure, and whether it meets its limit if it has one. */
export type Print = (line: string, kept?: boolean) => void

/** The value below which this part of the values lies. */
export const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))]!

export const median = (values: readonly number[]): number => quantile(values, 0.5)
