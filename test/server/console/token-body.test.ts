import { expect, test } from 'vitest'
import {
  changeBody,
  createBody,
  isHalf,
  shownHours,
  type Token,
} from '../../../server/console/app/pages/organizations/token-body.ts'

function form(fields: Record<string, string>, scopes: string[]): FormData {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.set(name, value)
  for (const scope of scopes) data.append('scopes', scope)
  return data
}

const before = {
  name: 'notebook',
  scopes: ['user:write', 'user:read'],
  status: 'active',
  models: ['qwen*'],
  expires_at: 5_000,
  rate_limit: { api: 60, jobs: null },
  tokens_per_minute: null,
  concurrent_requests: null,
  monthly_spend_limit: 25,
  local_only: false,
  allowed_hours: null,
} as Token
/** The form of `before` as nobody has changed it. */
const untouched = {
  name: 'notebook',
  expires: 'unchanged',
  models: 'qwen*',
  api: '60',
  jobs: '',
  tokens_per_minute: '',
  concurrent_requests: '',
  monthly_spend_limit: '25',
  hours_from: '',
  hours_to: '',
  hours_timezone: 'Europe/Oslo',
  enabled: 'on',
}

test('what is left empty is not sent, so that the limits of the own token apply', () => {
  const empty = { name: ' laptop ', expires: 'never', models: '', api: '', jobs: '', monthly_spend_limit: '' }
  expect(createBody(form(empty, ['user:read']), 1_000)).toEqual({
    name: 'laptop',
    scopes: ['user:read'],
    expires_at: null,
  })
})

test('models are split at commas, and 0 is a limit', () => {
  const fields = { name: 'a', expires: 'month', models: 'qwen*, , flux', api: '5', jobs: '', monthly_spend_limit: '0' }
  expect(createBody(form(fields, ['user:read']), 1_000)).toEqual({
    name: 'a',
    scopes: ['user:read'],
    expires_at: 1_000 + 30 * 86_400,
    models: ['qwen*', 'flux'],
    rate_limit: { api: 5, jobs: null },
    monthly_spend_limit: 0,
  })
})

test.each([
  ['nothing', {}, {}],
  ['a lower budget', { monthly_spend_limit: '2.5' }, { monthly_spend_limit: 2.5 }],
  ['work that stays here', { local_only: 'on' }, { local_only: true }],
  ['no budget', { monthly_spend_limit: '' }, { monthly_spend_limit: null }],
  ['no restriction of models', { models: '' }, { models: null }],
  ['no end', { expires: 'never' }, { expires_at: null }],
  [
    'hours',
    { hours_from: '08:00', hours_to: '17:00', hours_days: 'fri' },
    { allowed_hours: { timezone: 'Europe/Oslo', ranges: [{ days: ['fri'], from: '08:00', to: '17:00' }] } },
  ],
  ['a rate limit', { jobs: '3' }, { rate_limit: { api: 60, jobs: 3 } }],
] as const)('a change of %s sends only that', (_, change, body) => {
  expect(changeBody(form({ ...untouched, ...change }, ['user:read', 'user:write']), before, 1_000)).toEqual(body)
})

test('a box that is not ticked disables the token, but none that has ended', () => {
  const { enabled: _, ...unticked } = untouched
  const scopes = ['user:read', 'user:write']
  expect(changeBody(form(unticked, scopes), before, 1_000)).toEqual({ status: 'disabled' })
  expect(changeBody(form(unticked, scopes), { ...before, status: 'expired' }, 1_000)).toEqual({})
})

const range = { days: ['mon' as const], from: '08:00', to: '17:00' }
test.each([
  ['always', null, ''],
  ['one time of day', [range], '08:00'],
  ['two times', [range, { ...range, from: '18:00', to: '19:00' }], undefined],
  ['the whole day', [{ ...range, to: '24:00' }], undefined],
])('the form shows hours that it can write: %s', (_, ranges, from) => {
  expect(shownHours(ranges && { timezone: 'UTC', ranges })?.from).toBe(from)
})

test.for([
  ['', '', false],
  ['09:00', '17:00', false],
  ['09:00', '', true],
  ['', '17:00', true],
] as const)('hours from %j to %j are half a restriction: %s', ([hours_from, hours_to, half]) => {
  expect(isHalf(form({ ...untouched, hours_from, hours_to }, []))).toBe(half)
})
