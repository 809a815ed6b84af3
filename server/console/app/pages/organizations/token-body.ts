import type { components } from '../../api/types.generated.ts'

type Schemas = components['schemas']

export type Token = Schemas['Token']

const day = 86_400
export const expirySeconds = { month: 30 * day, quarter: 90 * day, year: 365 * day } as const

const numberOf = (form: FormData, name: string): number | null => {
  const written = String(form.get(name) ?? '').trim()
  return written === '' ? null : Number(written)
}

/** What the form says, as the API takes it. `unchanged` and `never` are the other choices of the expiry. */
function fieldsOf(form: FormData, nowSeconds: number) {
  const models = String(form.get('models') ?? '')
    .split(',')
    .map(one => one.trim())
    .filter(Boolean)
  const expiry = String(form.get('expires') ?? 'never')
  return {
    name: String(form.get('name')).trim(),
    scopes: form.getAll('scopes').map(String),
    models: models.length === 0 ? null : models,
    rate_limit: { api: numberOf(form, 'api'), jobs: numberOf(form, 'jobs') },
    tokens_per_minute: numberOf(form, 'tokens_per_minute'),
    concurrent_requests: numberOf(form, 'concurrent_requests'),
    monthly_spend_limit: numberOf(form, 'monthly_spend_limit'),
    ...(expiry === 'unchanged'
      ? {}
      : {
          expires_at: expiry in expirySeconds ? nowSeconds + expirySeconds[expiry as keyof typeof expirySeconds] : null,
        }),
  }
}

/** The body that creates a token. Limits that are left empty are absent: then those of the own token apply. */
export function createBody(form: FormData, nowSeconds: number): Schemas['TokenCreate'] {
  const { name, scopes, expires_at, rate_limit, ...rest } = fieldsOf(form, nowSeconds)
  return {
    name,
    scopes,
    expires_at: expires_at ?? null,
    ...(rate_limit.api === null && rate_limit.jobs === null ? {} : { rate_limit }),
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)),
  }
}

/** The body that changes a token: only what the form has changed. */
export function changeBody(form: FormData, before: Token, nowSeconds: number): Schemas['TokenChange'] {
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
