import { Failure } from '../failure.ts'
import { type AllowedHours, type VerifiableToken, weekdays } from '../store/store.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** Zones change their offset on full quarters of an hour. */
const slotMs = 15 * minuteMs

interface Zone {
  format: Intl.DateTimeFormat
  /** The quarter of an hour whose offset is known. */
  slot: number
  offset: number
}
const zones = new Map<string, Zone>()
/** There are 600 names, but each also in other case. A zone takes 10 kB and more. */
const maxZones = 1_000

/** To create a format takes 50 µs and to use it 5 µs, so each time zone keeps its own and its last offset. */
function zoneOf(timezone: string): Zone {
  const known = zones.get(timezone)
  if (known) return known
  const numeric = 'numeric'
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
  })
  const made = { format, slot: Number.NaN, offset: 0 }
  if (zones.size >= maxZones) zones.clear()
  zones.set(timezone, made)
  return made
}

/** The wall time of a zone as if it were UTC, epoch milliseconds of the full minute. */
function wallTime(timezone: string, at: number): number {
  const zone = zoneOf(timezone)
  const slot = Math.floor(at / slotMs)
  const minute = Math.floor(at / minuteMs) * minuteMs
  if (zone.slot !== slot) {
    const values: Record<string, number> = {}
    for (const { type, value } of zone.format.formatToParts(minute)) values[type] = Number(value)
    zone.offset = Date.UTC(values.year!, values.month! - 1, values.day, values.hour, values.minute) - minute
    zone.slot = slot
  }
  return minute + zone.offset
}

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

/** The first time at which the clocks of a zone show this wall time or, where they skip it, a later one. */
function instantOf(timezone: string, local: number): number {
  const offsets = [-dayMs, dayMs].map(apart => wallTime(timezone, local + apart) - (local + apart))
  const [first, last] = offsets.map(offset => local - offset).toSorted((a, b) => a - b) as [number, number]
  for (const at of [first, last]) if (wallTime(timezone, at) === local) return at
  let [before, after] = [first, last]
  while (after - before > minuteMs) {
    const middle = before + Math.floor((after - before) / 2 / minuteMs) * minuteMs
    if (wallTime(timezone, middle) >= local) after = middle
    else before = middle
  }
  return after
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
