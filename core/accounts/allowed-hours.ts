import { Failure } from '../failure.ts'
import { dayMs, instantOf, minuteMs, wallTime } from '../schedule/time-zone.ts'
import { type AllowedHours, type VerifiableToken, weekdays } from '../store/store.ts'

/** The minute of the day of a time such as `08:00`. */
export const minuteOf = (text: string): number => {
  const [hours, minutes] = text.split(':')
  return Number(hours) * 60 + Number(minutes)
}

const weekdayOf = (day: number) => weekdays[(((day + 3) % 7) + 7) % 7]!

/** Whether a token with these hours may be used at a time. A range that ends at or before its start ends the next day. */
export function isAllowedAt({ timezone, ranges }: AllowedHours, at: number): boolean {
  const local = wallTime(timezone, at)
  const day = Math.floor(local / dayMs)
  const minute = (local - day * dayMs) / minuteMs
  return ranges.some(({ days, from, to }) => {
    const [start, end] = [minuteOf(from), minuteOf(to)]
    if (end > start) return minute >= start && minute < end && days.includes(weekdayOf(day))
    return (minute >= start && days.includes(weekdayOf(day))) || (minute < end && days.includes(weekdayOf(day - 1)))
  })
}

/** When a token that may not be used now may be used again, epoch milliseconds; null if it never may. */
export function opensAt({ timezone, ranges }: AllowedHours, now: number): number | null {
  const today = Math.floor(wallTime(timezone, now) / dayMs)
  let earliest: number | null = null
  for (let day = today; day <= today + 7; day++)
    for (const { days, from } of ranges) {
      if (!days.includes(weekdayOf(day))) continue
      const at = instantOf(timezone, day * dayMs + minuteOf(from) * minuteMs)
      if (at > now && (earliest === null || at < earliest)) earliest = at
    }
  return earliest
}

/** The failure of a request with a token outside its hours; it says when the token may be used again. */
export function outsideHours(
  { name, hint }: Pick<VerifiableToken, 'name' | 'hint'>,
  hours: AllowedHours,
  now: number,
): Failure {
  const next = opensAt(hours, now)
  const text = hours.ranges.map(({ days, from, to }) => `${days.join(', ')} ${from}–${to}`).join('; ')
  const when = next === null ? 'Change its hours.' : `It may be used again from ${new Date(next).toISOString()}.`
  return new Failure(
    'outside_allowed_hours',
    `The token '${name}' (${hint}) may be used only at its allowed hours: ${text} (${hours.timezone}). ${when}`,
    { facts: { opens_at: next === null ? null : Math.floor(next / 1000) } },
  )
}
