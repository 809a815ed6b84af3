import { lengthText, sizeText } from '../quantities-text.ts'
import type { StatusLimit } from './status-snapshot.ts'
import { padded, type StyledLine } from './styled-line.ts'

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
export function limitLines(limits: readonly StatusLimit[]): StyledLine[] {
  if (limits.length === 0) return []
  return [[], [{ text: 'Limits', look: 'strong' }], ...limits.map(limitLine)]
}

function limitLine({ name, limit_of, limit, remaining, reset_seconds }: StatusLimit): StyledLine {
  const amount = (value: number) => (name === 'stored_bytes' ? sizeText(value) : String(value))
  const reset = reset_seconds === null || remaining === limit ? '' : `  all again in ${lengthText(reset_seconds)}`
  return [
    { text: `  ${padded(names[name] ?? name, 23)}${padded(limit_of, 14)}` },
    {
      text: `${amount(remaining)} of ${amount(limit)} left${reset}`,
      ...(remaining === 0 ? { look: 'warning' as const } : {}),
    },
  ]
}
