import { lengthText, sizeText } from '../terminal/quantities-text.ts'
import { padded, type StyledLine } from '../terminal/styled-line.ts'
import { moneyText } from '../usage/usage-table.ts'
import type { StatusLimit, StatusSpend } from './status-snapshot.ts'

const names: Record<string, string> = {
  requests_per_minute: 'requests a minute',
  jobs_per_minute: 'submissions a minute',
  tokens_per_minute: 'tokens a minute',
  concurrent_requests: 'requests at a time',
  pending_jobs: 'jobs that wait or run',
  stored_bytes: 'stored files',
  uploads_per_day: 'uploads a day',
}

/** Draws the limits of the token and its organization with what is left of them; nothing without limits. */
export function limitLines(limits: readonly StatusLimit[], spend?: StatusSpend): StyledLine[] {
  const lines = [...limits.map(limitLine), ...(spend ? spendLines(spend) : [])]
  return lines.length === 0 ? [] : [[], [{ text: 'Limits', look: 'strong' }], ...lines]
}

/** Draws the spend limits that exist, with what running work holds of them. */
function spendLines({ currency, ...spend }: StatusSpend): StyledLine[] {
  return (['organization', 'token'] as const).flatMap(limit_of => {
    const { monthly_limit: limit, remaining, held, period_end } = spend[limit_of]
    if (limit === null || remaining === null) return []
    const holds = held > 0 ? `, ${moneyText(held)} held by running work` : ''
    const amounts = `${moneyText(remaining)} of ${moneyText(limit)} ${currency} left${holds}`
    return [
      lineOf(
        ['spending a month', limit_of],
        `${amounts}  all again on ${new Date(period_end * 1000).toISOString().slice(0, 10)}`,
        remaining === 0,
      ),
    ]
  })
}

const lineOf = ([name, of]: readonly [string, string], text: string, usedUp: boolean): StyledLine => [
  { text: `  ${padded(name, 23)}${padded(of, 14)}` },
  { text, ...(usedUp ? { look: 'warning' as const } : {}) },
]

function limitLine({ name, limit_of, limit, remaining, reset_seconds }: StatusLimit): StyledLine {
  const amount = (value: number) => (name === 'stored_bytes' ? sizeText(value) : String(value))
  const reset = reset_seconds === null || remaining === limit ? '' : `  all again in ${lengthText(reset_seconds)}`
  return lineOf(
    [names[name] ?? name, limit_of],
    `${amount(remaining)} of ${amount(limit)} left${reset}`,
    remaining === 0,
  )
}
