/** A calendar month in UTC: its first millisecond, and that of the next one, epoch milliseconds. */
export interface Month {
  start: number
  end: number
}

/** Returns the month of a time. */
export function monthOf(at: number): Month {
  const date = new Date(at)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1) }
}
