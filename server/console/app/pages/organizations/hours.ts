import type { components } from '../../api/types.generated.ts'
import { formText, formTexts } from '../../components/form-text.ts'

export type Hours = components['schemas']['AllowedHours']
export type Day = Hours['ranges'][number]['days'][number]

export const days: readonly Day[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

/** What the form shows of hours: one time of day on some days. Undefined for hours that are more than that. */
export function shownHours(hours: Hours | null): Hours['ranges'][number] | undefined {
  if (hours === null) return { days: [...days], from: '', to: '' }
  const [range, ...others] = hours.ranges
  // A field of a time of day ends at 23:59.
  return range === undefined || others.length > 0 || range.to === '24:00' ? undefined : range
}

/** Whether only one of the two times is given: that would be no restriction. */
export const isHalf = (form: FormData): boolean =>
  form.has('hours_from') && (formText(form, 'hours_from') === '') !== (formText(form, 'hours_to') === '')

/** The hours that the form says: null for always, undefined if it does not show them. */
export function hoursIn(form: FormData): Hours | null | undefined {
  if (!form.has('hours_from')) return undefined
  const [from, to] = [formText(form, 'hours_from'), formText(form, 'hours_to')]
  if (from === '' || to === '') return null
  const ticked = days.filter(day => formTexts(form, 'hours_days').includes(day))
  const range = { days: ticked.length === 0 ? [...days] : ticked, from, to }
  return { timezone: formText(form, 'hours_timezone'), ranges: [range] }
}
