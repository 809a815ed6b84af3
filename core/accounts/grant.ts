import { Failure, invalid } from '../failure.ts'
import { type AllowedHours, type Role, roles, type Scope, scopes, type TokenLimits, weekdays } from '../store/store.ts'
import type { Caller } from './accounts.ts'
import { minuteOf } from './allowed-hours.ts'
import { modelAllowed } from './model-allowed.ts'

/**
 * The caller who creates or changes a token: he may not grant rights that he lacks, or every token could extend itself.
 */
type Granter = Pick<Caller, 'scopes'> & { token: Pick<Caller['token'], 'models'> }

/**
 * Returns the scopes, each once. Throws Failure `invalid_scope`, and `insufficient_scope` for a scope that the granter
 * lacks.
 */
export function grantScopes(requested: readonly string[], granter: Granter): Scope[] {
  const unknown = requested.find(scope => !(scopes as readonly string[]).includes(scope))
  if (unknown !== undefined)
    throw invalid(
      'scopes',
      `There is no scope '${unknown.slice(0, 60)}'. There are: ${scopes.join(', ')}.`,
      'invalid_scope',
    )
  const lacking = (requested as Scope[]).find(scope => !granter.scopes.includes(scope))
  if (lacking)
    throw new Failure(
      'insufficient_scope',
      `This token lacks the scope ${lacking}, so it cannot grant it to another token.`,
      { param: 'scopes', facts: { required_scope: lacking } },
    )
  return [...new Set(requested as Scope[])]
}

/**
 * Returns the model patterns; null is all models. Throws Failure `model_not_allowed` if they allow more than the
 * granter's own. Ids contain no `*`, so a pattern that matches another pattern as text also matches all ids that the
 * other one matches.
 */
export function grantModels(requested: readonly string[] | null, granter: Granter): string[] | null {
  const own = granter.token.models
  if (own !== null && (requested === null || requested.some(pattern => !modelAllowed(own, pattern))))
    throw invalid(
      'models',
      `This token may use ${own.map(pattern => `'${pattern}'`).join(', ')} only, so it cannot grant other models to another token.`,
      'model_not_allowed',
    )
  return requested === null ? null : [...requested]
}

/** The name of each limit of a token in the API. */
const wireNames = {
  requestsPerMinute: 'rate_limit.api',
  jobsPerMinute: 'rate_limit.jobs',
  tokensPerMinute: 'tokens_per_minute',
  concurrentRequests: 'concurrent_requests',
  monthlySpendLimit: 'monthly_spend_limit',
} as const

/**
 * Returns the limits. Throws Failure `invalid_value` for one that is higher than the granter's own: a token with a limit
 * cannot issue one without, or every limit could be escaped.
 */
export function grantLimits(requested: Partial<TokenLimits>, own: TokenLimits): Partial<TokenLimits> {
  for (const [name, param] of Object.entries(wireNames) as [keyof typeof wireNames, string][]) {
    const [wanted, most] = [requested[name], own[name]]
    if (wanted === undefined || most === null || (wanted !== null && wanted <= most)) continue
    const shown = name === 'monthlySpendLimit' ? most / 1e6 : most
    throw invalid(
      param,
      `This token has the limit ${shown} for '${param}' itself, so it cannot grant ${wanted === null ? 'no limit' : 'more'}.`,
    )
  }
  if (own.localOnly && requested.localOnly === false)
    throw invalid(
      'local_only',
      "The work of this token never leaves this machine ('local_only'), so it cannot create or change a token whose work may.",
    )
  const { allowedHours: wanted } = requested
  if (wanted !== undefined && own.allowedHours !== null && !hoursWithin(wanted, own.allowedHours))
    throw invalid(
      'allowed_hours',
      `This token may be used at ${hoursText(own.allowedHours)} only, so it cannot grant other hours.`,
    )
  return requested
}

const minutesOfDay = 1440

/** The minutes of a week that are allowed. */
function minutesOf({ ranges }: AllowedHours): Uint8Array {
  const allowed = new Uint8Array(weekdays.length * minutesOfDay)
  for (const { days, from, to } of ranges)
    for (const day of days) {
      const start = weekdays.indexOf(day) * minutesOfDay
      allowed.fill(1, start + minuteOf(from), start + minuteOf(to))
    }
  return allowed
}

/** Whether hours allow nothing beyond others. Those of another time zone count as beyond: offsets change in the year. */
export function hoursWithin(hours: AllowedHours | null, others: AllowedHours): boolean {
  if (hours === null || hours.timezone !== others.timezone) return false
  const within = minutesOf(others)
  return minutesOf(hours).every((minute, at) => minute <= within[at]!)
}

/** Describes hours in one line: `mon,tue 08:00-18:00 (Europe/Berlin)`. */
export const hoursText = ({ timezone, ranges }: AllowedHours): string =>
  `${ranges.map(({ days, from, to }) => `${days.join(',')} ${from}-${to}`).join(', ')} (${timezone})`

/** Higher for more rights. A token without a user has the rights of an owner. */
const rankOf = (role: Role | null): number => (role === null ? roles.length : roles.length - roles.indexOf(role))

/**
 * Throws Failure `role_not_allowed` if the granter's role is below that of the user, or of the role that he would give:
 * an administrator cannot make himself an owner. Null is a token without a user.
 */
export function grantRole(role: Role | null, own: Role | null, act: string): void {
  if (own === null || rankOf(role) <= rankOf(own)) return
  const whom = role === null ? 'a token without a user' : `an ${role}`.replace(/^an (?=[mv])/, 'a ')
  throw new Failure('role_not_allowed', `Your token belongs to a user with the role ${own}, who cannot ${act} ${whom}.`)
}
