import { moneyText } from '../../../../core/money-text.ts'
import type { Schema } from '../api/schema.ts'
import { shellText } from '../text/shell.ts'

/** How the console writes numbers, sizes, durations and times: always with their unit. */
const number = new Intl.NumberFormat('en')
const decimal = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const dateTime = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'narrow' })

/** `12,345` */
export const countText = (count: number): string => number.format(count)

/** `1,234.5` */
export const decimalText = (amount: number): string => decimal.format(amount)

/** `12.3K` */
export const shortCountText = (count: number): string => short.format(count)

const binary = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `1.5 GiB` */
export function sizeText(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(binary.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, '')} ${binary[step]}`
}

/** A duration, or a dash for one that is not known. */
export const knownDuration = (ms: number | null): string => (ms === null ? '–' : durationText(ms))

/** `350 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min` */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')} s`
  const seconds = Math.round(ms / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)]
  if (hours === 0) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  return minutes === 0 ? `${hours} h` : `${hours} h ${minutes} min`
}

/** `infer 1.2.0, running for 3 min 5 s` */
export const serverText = ({ version, time, started_at }: Schema<'SystemStatus'>): string =>
  shellText.running(version, durationText(Math.max(0, time - started_at) * 1_000))

/** A cost with the currency of the configured prices: `0.0012 USD`; an empty currency is left out. */
export const costText = (cost: number, currency: string): string =>
  `${cost === 0 ? '0' : moneyText(cost)}${currency && ` ${currency}`}`

/** JSON with a line for each value; any other text as it is. */
export function indentedJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** `Nov 24, 2026, 10:15:00 AM` */
export const dateText = (unixSeconds: number): string => dateTime.format(unixSeconds * 1_000)

const isoTime = /\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z/g

/** A sentence of the server with its times as the console writes them. */
export const sentenceText = (sentence: string): string =>
  sentence.replace(isoTime, time => dateText(Date.parse(time) / 1_000))

const steps: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** `5 min. ago`, `in 2 hr.` */
export function relativeText(unixSeconds: number, now = Date.now()): string {
  const seconds = Math.round(unixSeconds - now / 1_000)
  const [unit, size] = steps.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return relative.format(Math.trunc(seconds / size), unit)
}
