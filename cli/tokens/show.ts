import type { TokenView } from '../../core/accounts/token-fields.ts'
import { moneyText } from '../../core/money-text.ts'
import { type Client, dataOf } from '../client/client.ts'
import { limitLines } from '../status/draw.ts'
import { timeText } from '../terminal/quantities-text.ts'
import { drawLine, printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Prints the token of the client, and what is left of its limits and of those of its organization. */
export async function showOwnToken({ api }: Client, terminal: Terminal, asJson: boolean): Promise<void> {
  const me = await dataOf(api.GET('/api/me'))
  if (asJson) return terminal.json(me)
  const { id, name, plan } = me.organization
  terminal.table(
    ['token', printable(me.token.name)],
    [...rowsOf(me.token), ['organization', `${printable(name)} (${id}, plan ${plan})`]],
  )
  const width = terminal.isTerminal ? terminal.stdout.columns : Number.MAX_SAFE_INTEGER
  for (const line of limitLines(me.limits, me.spend)) terminal.print(drawLine(line, width, terminal.paint))
  const { organization, token, currency } = me.spend
  if (organization.monthly_limit === null && token.monthly_limit === null)
    terminal.print(`\nSpent this month: ${moneyText(token.spent)} ${currency}, without a limit.`)
}

/** Prints a token with the limits that it has of its own. */
export const showToken = (token: TokenView, terminal: Terminal): void =>
  terminal.table(['token', printable(token.name)], [...rowsOf(token), ...ownLimits(token)])

const time = (seconds: number | null): string => timeText(seconds === null ? null : seconds * 1000)

const rowsOf = (token: TokenView): string[][] => [
  ['id', token.id],
  ['status', token.status],
  ['owner', token.user_id ?? 'nobody'],
  ['scopes', token.scopes.join(' ')],
  ['models', printable(token.models?.join(' ') ?? 'all')],
  ['expires', token.expires_at === null ? 'never' : time(token.expires_at)],
  ['last used', time(token.last_used_at)],
]

const ownLimits = (token: TokenView): string[][] => {
  const row = (title: string, limit: number | null, text: (limit: number) => string = String) => [
    title,
    limit === null ? 'no limit of its own' : text(limit),
  ]
  return [
    row('requests per minute', token.rate_limit.api),
    row('jobs per minute', token.rate_limit.jobs),
    row('tokens per minute', token.tokens_per_minute),
    row('concurrent requests', token.concurrent_requests),
    row('spend limit per month', token.monthly_spend_limit, moneyText),
    ['stays on this machine', token.local_only ? 'yes' : 'no'],
  ]
}
