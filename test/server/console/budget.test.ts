import { expect, test } from 'vitest'
import { forecastOf } from '../../../server/console/app/components/budget-forecast.ts'
import { limitState, percentUsed } from '../../../server/console/app/components/limit-use.ts'

const day = 86_400
const spend = { spent: 10, monthly_limit: 25, period_start: 0, period_end: 30 * day }

test.each([
  ['the first day says nothing', spend, 0.9 * day, undefined],
  ['nothing is spent', { ...spend, spent: 0 }, 9 * day, undefined],
  ['it reaches the limit', spend, 10 * day, { total: 30, reachedAt: 25 * day }],
  ['it stays below the limit', { ...spend, monthly_limit: 31 }, 10 * day, { total: 30, reachedAt: null }],
  ['there is no limit', { ...spend, monthly_limit: null }, 10 * day, { total: 30, reachedAt: null }],
  ['the limit is reached already', { ...spend, monthly_limit: 10 }, 10 * day, { total: 30, reachedAt: null }],
  ['it is told in three digits', { ...spend, spent: 9.00001 }, 29 * day, { total: 9.31, reachedAt: null }],
  ['the month is over', spend, 40 * day, { total: 10, reachedAt: null }],
])('forecast of a month where %s', (_, given, now, forecast) => {
  expect(forecastOf(given, now)).toEqual(forecast)
})

test.each([
  [0, 0, 'free', 0],
  [7.99, 10, 'free', 79],
  [8, 10, 'near', 80],
  [9.99, 10, 'near', 99],
  [12, 10, 'reached', 100],
])('%d of %d', (used, limit, state, percent) => {
  expect([limitState(used, limit), percentUsed(used, limit)]).toEqual([state, percent])
})
