import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { costText, countText } from '../../components/format.ts'
import type { Column } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { tokensText as text } from '../../text/organizations.ts'
import type { Token } from './token-body.ts'

const statusKinds = { active: 'good', disabled: 'warning', revoked: 'plain', expired: 'plain' } as const

/** What restricts a token, in words. */
function limitsText(token: Token): string {
  const { models, rate_limit, monthly_spend_limit: spend } = token
  const some = (value: number | null, words: (count: string) => string) =>
    value === null ? [] : [words(countText(value))]
  const all = [
    ...(models === null ? [] : [text.models(models.join(', '))]),
    ...(spend === null ? [] : [text.spend(costText(spend))]),
    ...some(rate_limit.api, text.requests),
    ...some(rate_limit.jobs, text.jobs),
    ...some(token.tokens_per_minute, text.perMinute),
    ...some(token.concurrent_requests, text.concurrent),
    ...(token.allowed_hours === null ? [] : [text.hours]),
  ]
  return all.length === 0 ? text.unlimited : all.join('; ')
}

export type Action = 'edit' | 'rotate' | 'revoke'

/** The columns of tokens; actions only for whoever may change them. */
export const tokenColumns = (
  ownId: string,
  act: ((action: Action, token: Token) => void) | undefined,
): readonly Column<Token>[] => [
  {
    name: text.columns.name,
    show: ({ id, name, hint }) => (
      <span className="inline-flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">{name}</span>
        {id === ownId && <Badge kind="active">{text.own}</Badge>}
        <span className="text-muted text-xs">{hint}</span>
      </span>
    ),
  },
  { name: text.columns.status, show: ({ status }) => <Badge kind={statusKinds[status]}>{text.status[status]}</Badge> },
  { name: text.columns.scopes, show: ({ scopes }) => scopes.join(', ') },
  { name: text.columns.limits, show: limitsText },
  { name: text.columns.spent, show: ({ spend: { spent } }) => costText(spent), number: true },
  {
    name: text.columns.expires,
    show: ({ expires_at }) => (expires_at === null ? text.never : <Time at={expires_at} />),
  },
  {
    name: text.columns.used,
    show: ({ last_used_at }) => (last_used_at === null ? text.never : <Time at={last_used_at} />),
  },
  ...(act
    ? [
        {
          name: text.columns.actions,
          show: (token: Token) => (
            <span className="flex gap-1 max-md:flex-wrap max-md:justify-end">
              {token.status !== 'revoked' && (
                <Button small aria-label={`${text.edit} ${token.name}`} onClick={() => act('edit', token)}>
                  {text.edit}
                </Button>
              )}
              {token.status === 'active' && (
                <Button small aria-label={`${text.rotate} ${token.name}`} onClick={() => act('rotate', token)}>
                  {text.rotate}
                </Button>
              )}
              {token.status !== 'revoked' && (
                <Button small danger aria-label={`${text.revoke} ${token.name}`} onClick={() => act('revoke', token)}>
                  {text.revoke}
                </Button>
              )}
            </span>
          ),
        },
      ]
    : []),
]
