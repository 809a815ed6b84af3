import { dayMs, instantOf, minuteMs, wallTime } from './time-zone.ts'

/** A schedule of five fields, parsed. Days: of the month 1 to 31, of the week 0 (Sunday) to 6. */
export interface Cron {
  /** As it was written. */
  readonly text: string
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** A day is one of either kind, rather than of both: neither field begins with `*`. */
  readonly eitherDay: boolean
}

interface Field {
  name: string
  first: number
  last: number
  names?: readonly string[]
}

const fields: readonly Field[] = [
  { name: 'minute', first: 0, last: 59 },
  { name: 'hour', first: 0, last: 23 },
  { name: 'day of the month', first: 1, last: 31 },
  {
    name: 'month',
    first: 1,
    last: 12,
    names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  },
  { name: 'day of the week', first: 0, last: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
]
/** Of each month, in a leap year. */
const longest = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/**
 * Parses `minute hour day-of-month month day-of-week`: numbers, English names of months and weekdays, `*`, ranges, steps
 * and lists, as in `0,30 8-18/2 * jan-mar mon-fri`. As in cron, a day matches one of the two day fields if neither begins
 * with `*`, else both; Sunday is 0 and 7. Returns what is wrong as a sentence, also if it can never be.
 */
export function parseCron(text: string): Cron | { fault: string } {
  const parts = text.trim().split(/\s+/)
  if (parts.length !== 5)
    return {
      fault: `A schedule has five fields: minute, hour, day of the month, month, day of the week, as in '0 8 * * 1-5'. '${text}' has ${text.trim() === '' ? 0 : parts.length}.`,
    }
  const values: number[][] = []
  for (const [at, field] of fields.entries()) {
    const read = parseField(parts[at]!, field)
    if (typeof read === 'string') return { fault: read }
    values.push(read)
  }
  const [minutes, hours, days, months, weekdays] = values as [number[], number[], number[], number[], number[]]
  const eitherDay = !parts[2]!.startsWith('*') && !parts[4]!.startsWith('*')
  if (!eitherDay && !months.some(month => days[0]! <= longest[month - 1]!))
    return { fault: `'${text}' never comes: no month of it has a day ${days[0]}.` }
  return {
    text: parts.join(' '),
    minutes,
    hours,
    days: new Set(days),
    months: new Set(months),
    weekdays: new Set(weekdays.map(day => day % 7)),
    eitherDay,
  }
}

/** The values of a field in ascending order, or what is wrong with it. */
function parseField(text: string, field: Field): number[] | string {
  const { name, first, last, names } = field
  const wrong = (part: string, why: string) => `'${part}' is no ${name}: ${why}.`
  const found = new Set<number>()
  for (const part of text.split(',')) {
    const [, range = '', step] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(part) ?? []
    const [from = '', to] = range.split('-')
    const values = [from, ...(to === undefined ? [] : [to])].map(one => valueOf(one, field))
    const [start, end] = range === '*' ? [first, last] : values
    if (start === undefined || (to !== undefined && end === undefined) || range.split('-').length > 2) {
      const also = names ? `, or a name such as ${names[1]}` : ''
      return wrong(part, `write a number from ${first} to ${last}${also}, a range, '*' or a list with commas`)
    }
    if (Number(step) === 0) return wrong(part, 'its step is 0')
    // A week from Saturday to Sunday ends with day 7.
    const until = end === 0 && field.last === 7 && start > 0 ? 7 : (end ?? (step === undefined ? start : last))
    if (until < start) return wrong(part, 'the range ends before it begins')
    for (let value = start; value <= until; value += Number(step ?? 1)) found.add(value)
  }
  return [...found].toSorted((a, b) => a - b)
}

function valueOf(text: string, { first, last, names = [] }: Field): number | undefined {
  const named = names.indexOf(text.toLowerCase())
  if (named >= 0) return named + first
  const value = Number(text)
  return /^\d{1,2}$/.test(text) && value >= first && value <= last ? value : undefined
}

/** The longest time between two times of a schedule: a day of the week on the 29th of February, over 2100. */
const mostDays = 41 * 366

/**
 * The first time of the schedule after this one, epoch milliseconds, by the clocks of a time zone.
 *
 * Where the clocks change: with any hour (`*`), it is each hour that passes, so one that comes twice counts twice, and one
 * that is skipped does not count. Otherwise each time of the clock counts once: the first of two, and in place of times
 * that are skipped, the first minute after them.
 */
export function nextTime(cron: Cron, timezone: string, after: number): number {
  const start = Math.floor(after / minuteMs) * minuteMs + minuteMs
  const everyHour = cron.hours.length === 24
  let day = Math.floor(wallTime(timezone, start) / dayMs)
  for (const last = day + mostDays; day <= last; day++) {
    const date = new Date(day * dayMs)
    if (!cron.months.has(date.getUTCMonth() + 1)) {
      // To the last day of the month.
      day = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1) / dayMs - 1
      continue
    }
    if (!isDay(cron, date)) continue
    const found = everyHour ? inEachHour(cron, timezone, day, start) : onceByClock(cron, timezone, day, start)
    if (found !== undefined) return found
  }
  throw new Error(`The schedule '${cron.text}' has no time within ${mostDays} days`)
}

function isDay({ days, weekdays, eitherDay }: Cron, date: Date): boolean {
  const [inMonth, inWeek] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())]
  return eitherDay ? inMonth || inWeek : inMonth && inWeek
}

/** The first minute of the day from `start` on that the clocks show as one of these minutes of an hour. */
function inEachHour({ minutes }: Cron, timezone: string, day: number, start: number): number | undefined {
  const wanted = new Set(minutes)
  for (let at = Math.max(start, instantOf(timezone, day * dayMs)); ; at += minuteMs) {
    const wall = wallTime(timezone, at)
    const own = Math.floor(wall / dayMs)
    if (own > day) return undefined
    if (own === day && wanted.has((wall / minuteMs) % 60)) return at
  }
}

/** The first of the times of the day from `start` on. They are in order, so half of them are left out with each look. */
function onceByClock({ minutes, hours }: Cron, timezone: string, day: number, start: number): number | undefined {
  const instant = (at: number): number => {
    const [hour, minute] = [hours[Math.floor(at / minutes.length)]!, minutes[at % minutes.length]!]
    return instantOf(timezone, day * dayMs + (hour * 60 + minute) * minuteMs)
  }
  let [from, to] = [0, minutes.length * hours.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (instant(middle) >= start) to = middle
    else from = middle + 1
  }
  return from < minutes.length * hours.length ? instant(from) : undefined
}
