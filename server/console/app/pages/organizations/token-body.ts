import type { Schema } from '../../api/schema.ts'
import { formNumber, formText, formTexts } from '../../components/form-text.ts'

export type Token = Schema<'TokenWithSpend'>

const day = 86_400
const expirySeconds = { month: 30 * day, quarter: 90 * day, year: 365 * day } as const

/** How long a new token with these scopes is valid unless a person chooses: as long as one that `infer token create` makes. */
export const defaultExpiry = (scopes: readonly string[]): 'quarter' | 'never' =>
  scopes.some(scope => scope.startsWith('admin:')) ? 'quarter' : 'never'

/** What the form says, as the API takes it. `unchanged` and `never` are the other choices of the expiry. */
function fieldsOf(form: FormData, nowSeconds: number) {
  const models = formText(form, 'models')
    .split(',')
    .map(one => one.trim())
    .filter(Boolean)
  const expiry = formText(form, 'expires')
  const hours = hoursIn(form)
  return {
    name: formText(form, 'name'),
    scopes: formTexts(form, 'scopes'),
    models: models.length === 0 ? null : models,
    rate_limit: { api: formNumber(form, 'api'), jobs: formNumber(form, 'jobs') },
    tokens_per_minute: formNumber(form, 'tokens_per_minute'),
    concurrent_requests: formNumber(form, 'concurrent_requests'),
    monthly_spend_limit: formNumber(form, 'monthly_spend_limit'),
    local_only: form.has('local_only'),
    ...(hours === undefined ? {} : { allowed_hours: hours }),
    ...(expiry === 'unchanged'
      ? {}
      : {
          expires_at: expiry in expirySeconds ? nowSeconds + expirySeconds[expiry as keyof typeof expirySeconds] : null,
        }),
  }
}

/** The body that creates a token. Limits that are left empty are absent: then those of the own token apply. */
export function createBody(form: FormData, nowSeconds: number): Schema<'TokenCreate'> {
  const { name, scopes, expires_at, rate_limit, local_only, ...rest } = fieldsOf(form, nowSeconds)
  return {
    name,
    scopes,
    expires_at: expires_at ?? null,
    ...(local_only ? { local_only } : {}),
    ...(rate_limit.api === null && rate_limit.jobs === null ? {} : { rate_limit }),
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)),
  }
}

/** The body that changes a token: only what the form has changed. */
export function changeBody(form: FormData, before: Token, nowSeconds: number): Schema<'TokenChange'> {
  const { scopes, ...fields } = fieldsOf(form, nowSeconds)
  const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
  const changed = Object.entries(fields).filter(([name, value]) => !same(value, before[name as keyof Token]))
  const status = form.get('enabled') === null ? 'disabled' : 'active'
  return {
    ...Object.fromEntries(changed),
    ...(same(scopes.toSorted(), before.scopes.toSorted()) ? {} : { scopes }),
    ...(before.status === status || !['active', 'disabled'].includes(before.status) ? {} : { status }),
  }
}

export type Hours = Schema<'AllowedHours'>
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
function hoursIn(form: FormData): Hours | null | undefined {
  if (!form.has('hours_from')) return undefined
  const [from, to] = [formText(form, 'hours_from'), formText(form, 'hours_to')]
  if (from === '' || to === '') return null
  const ticked = days.filter(day => formTexts(form, 'hours_days').includes(day))
  const range = { days: ticked.length === 0 ? [...days] : ticked, from, to }
  return { timezone: formText(form, 'hours_timezone'), ranges: [range] }
}
