import { Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import { api, at, dataOf, refresh, type Schema, type Session, usePages, useSession } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { namesKey } from '../../api/names.ts'
import { announce } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Confirm, FormDialog } from '../../components/dialog.tsx'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { costText, countText } from '../../components/format.ts'
import { limitState, percentUsed } from '../../components/limit-use.ts'
import { Bar } from '../../components/meter.tsx'
import { Empty, MoreButton, Notice, Queried, Section } from '../../components/page.tsx'
import { showSecret } from '../../components/shown-secret.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { budgetText } from '../../text/budget.ts'
import { tokensText as text } from '../../text/organizations.ts'
import { RowActions } from './row-actions.tsx'
import { changeBody, createBody, type Token } from './token-body.ts'
import { TokenForm } from './token-form.tsx'

const statuses = Object.keys(text.status) as Token['status'][]
const nowSeconds = () => Math.floor(Date.now() / 1_000)

/** The tokens of an organization. A new secret is shown once. */
export function Tokens({ organization }: { organization: Schema<'Organization'> }) {
  const { session, can } = useSession()
  const [params, change] = useAddress()
  const [dialog, setDialog] = useState<{ action: 'create' } | { action: Action; token: Token }>()
  const path = { organization: organization.id }
  const wanted = params.get('status') ?? 'active'
  const status = statuses.find(one => one === wanted)
  const query = usePages(['organizations', 'tokens', organization.id, status], after =>
    api.GET('/api/organizations/{organization}/tokens', at(path, { limit: 50, status, after })),
  )
  useLiveRefresh(['token.'], ['organizations', 'tokens'])
  const mayChange = can('admin:write') && organization.status !== 'deleted'
  const columns = useMemo(
    () => tokenColumns(session, mayChange ? (action, token) => setDialog({ action, token }) : undefined),
    [session, mayChange],
  )
  const rows = useMemo(() => query.data?.pages.flatMap(({ tokens }) => tokens) ?? [], [query.data])
  return (
    <Section
      title={text.title}
      actions={
        mayChange && <Button primary icon={Plus} onClick={() => setDialog({ action: 'create' })} label={text.create} />
      }
    >
      <div className="mb-3 w-44">
        <SelectField
          label={text.statusLabel}
          value={status ?? 'all'}
          change={one => change({ status: one })}
          options={[...optionsOf(text.status), { id: 'all', name: text.any }]}
        />
      </div>
      <Queried query={query} lines={5}>
        {() =>
          rows.length === 0 ? (
            <Empty title={status ? text.none(text.status[status]) : text.noneAtAll}>
              <p>{text.noneHint}</p>
            </Empty>
          ) : (
            <Table label={text.title} columns={columns} rows={rows} rowKey="id" />
          )
        }
      </Queried>
      <MoreButton query={query} className="mt-3" />
      {dialog && <TokenDialog {...dialog} organization={organization} close={() => setDialog(undefined)} />}
    </Section>
  )
}

type TokenDialogProps = ({ action: 'create'; token?: undefined } | { action: Action; token: Token }) & {
  organization: Schema<'Organization'>
  close: () => void
}

/** Reads again what shows the tokens of an organization, or their number. */
function tokensChanged(organization: string): void {
  void refresh('organizations', 'tokens', organization)
  void refresh('organizations', 'users', organization)
  // The names of tokens, which other pages show.
  void refresh('tokens', organization)
  void refresh(...namesKey(organization))
}

interface CreateTokenProps {
  organization: Schema<'Organization'>
  /** The user whose token it will be; absent for a token of nobody. */
  owner?: Schema<'User'>
  close: () => void
}

/** Creates a token and shows its secret. */
export function CreateToken({ organization: { id, name }, owner, close }: CreateTokenProps) {
  const save = async (form: FormData) => {
    const body = { ...createBody(form, nowSeconds()), ...(owner ? { user_id: owner.id } : {}) }
    const call = api.POST('/api/organizations/{organization}/tokens', { ...at({ organization: id }), body })
    const created = await dataOf(call)
    showSecret({ name: created.token.name, secret: created.secret })
    tokensChanged(id)
    close()
  }
  return (
    <TokenForm
      title={text.createTitle(owner?.name ?? name)}
      action={text.create}
      role={owner?.role}
      close={close}
      save={save}
    />
  )
}

function TokenDialog({ action, token, organization, close }: TokenDialogProps) {
  const { session } = useSession()
  const path = { organization: organization.id }
  function changed(): void {
    tokensChanged(organization.id)
    close()
  }
  if (action === 'create') return <CreateToken organization={organization} close={close} />
  const { id, name } = token
  const params = { path: { ...path, id } }
  if (action === 'edit')
    return (
      <TokenForm
        title={text.editTitle(name)}
        action={text.save}
        token={token}
        close={close}
        save={async form => {
          const body = changeBody(form, token, nowSeconds())
          await dataOf(api.PATCH('/api/organizations/{organization}/tokens/{id}', { params, body }))
          changed()
          announce('good', text.saved(name))
        }}
      />
    )
  if (action === 'rotate')
    return (
      <FormDialog
        title={text.rotateTitle(name)}
        action={text.rotateAct}
        about={
          <>
            <p>{text.rotateText}</p>
            {/* The session stands for this token, and ends with its old secret. */}
            {id === session.token.id && <Notice kind="warning">{text.rotateOwn}</Notice>}
          </>
        }
        close={close}
        save={async form => {
          const body = { overlap_seconds: Number(form.get('overlap')) }
          const call = api.POST('/api/organizations/{organization}/tokens/{id}/rotate', { params, body })
          const { secret } = await dataOf(call)
          showSecret({ name, secret })
          changed()
        }}
      >
        {() => <SelectField label={text.overlap} name="overlap" options={optionsOf(text.overlaps)} />}
      </FormDialog>
    )
  return (
    <Confirm
      title={text.revokeTitle(name)}
      action={text.revokeAct}
      close={close}
      act={async () => {
        await dataOf(api.POST('/api/organizations/{organization}/tokens/{id}/revoke', { params }))
        changed()
        announce('good', text.revoked(name))
      }}
    >
      <p>{text.revokeText}</p>
      {id === session.token.id && (
        <Notice kind="warning" className="mt-2">
          {text.revokeOwn}
        </Notice>
      )}
    </Confirm>
  )
}

const statusKinds = { active: 'good', disabled: 'warning', revoked: 'plain', expired: 'plain' } as const

/** What restricts a token, in words. */
function limitsText({ models, rate_limit, monthly_spend_limit: spend, ...token }: Token, currency: string): string {
  const some = (value: number | null, words: (count: string) => string) => value !== null && words(countText(value))
  const all = [
    models !== null && text.models(models.join(', ')),
    spend !== null && text.spend(costText(spend, currency)),
    some(rate_limit.api, text.requests),
    some(rate_limit.jobs, text.jobs),
    some(token.tokens_per_minute, text.perMinute),
    some(token.concurrent_requests, text.concurrent),
    token.allowed_hours !== null && text.hours,
    token.local_only && text.localOnly,
  ]
  return all.filter(Boolean).join('; ') || text.unlimited
}

/** What a token has spent in this month, and how much of its limit that is. */
function Spent({ token: { spend }, currency }: { token: Token; currency: string }) {
  const { spent, held, monthly_limit: limit } = spend
  const spentText = costText(spent, currency)
  if (limit === null) return spentText
  const percent = percentUsed(spent + held, limit)
  return (
    <span className="inline-block min-w-24 space-y-1">
      <span className="block">{budgetText.part(spentText, percent)}</span>
      <Bar
        label={budgetText.spent(spentText, costText(limit, currency), percent)}
        parts={[{ name: text.columns.spent, amount: spent + held }]}
        whole={limit}
        state={limitState(spent + held, limit)}
      />
    </span>
  )
}

type Action = 'edit' | 'rotate' | 'revoke'

/** When each action can be taken on a token. */
const actions: Readonly<Record<Action, (token: Token) => boolean>> = {
  edit: ({ status }) => status !== 'revoked',
  rotate: ({ status }) => status === 'active',
  revoke: ({ status }) => status !== 'revoked',
}

/** The columns of tokens; actions only for whoever may change them. */
const tokenColumns = (
  { token: { id: ownId }, currency }: Session,
  act: ((action: Action, token: Token) => void) | undefined,
): readonly Column<Token>[] =>
  columnsOf(text.columns, {
    name: ({ id, name, hint }) => (
      <span className="inline-flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">{name}</span>
        {id === ownId && <Badge kind="active">{text.own}</Badge>}
        <span className="text-muted text-xs">{hint}</span>
      </span>
    ),
    status: ({ status }) => <Badge kind={statusKinds[status]}>{text.status[status]}</Badge>,
    scopes: ({ scopes }) => scopes.join(', '),
    limits: token => limitsText(token, currency),
    spent: { number: true, show: token => <Spent token={token} currency={currency} /> },
    expires: ({ expires_at }) => (expires_at === null ? text.never : <Time at={expires_at} />),
    used: ({ last_used_at }) => (last_used_at === null ? text.never : <Time at={last_used_at} />),
    actions:
      act &&
      (token => (
        <RowActions
          offered={(Object.keys(actions) as Action[]).filter(action => actions[action](token))}
          names={text}
          danger="revoke"
          labelOf={name => `${name} ${token.name}`}
          act={action => act(action, token)}
        />
      )),
  })
