import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type FormEvent, useMemo, useState } from 'react'
import { useSearchParams } from 'wouter'
import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/queries.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/code.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { SelectField, TextArea } from '../../components/fields.tsx'
import { Empty, Failed, Notice, Queried, Section } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { tokensText as text } from '../../text/organizations.ts'
import { shellText } from '../../text/shell.ts'
import { changeBody, createBody, type Token } from './token-body.ts'
import { type Action, tokenColumns } from './token-columns.tsx'
import { TokenForm } from './token-form.tsx'

const statuses = Object.keys(text.status) as Token['status'][]
const nowSeconds = () => Math.floor(Date.now() / 1_000)

/** The tokens of an organization. A new secret is shown once. */
export function Tokens({ organization }: { organization: Schema<'Organization'> }) {
  const { session, can } = useSession()
  const [params, setParams] = useSearchParams()
  const [dialog, setDialog] = useState<{ action: 'create' } | { action: Action; token: Token }>()
  const [secret, setSecret] = useState<Secret>()
  const path = { organization: organization.id }
  const wanted = params.get('status') ?? 'active'
  const status = statuses.find(one => one === wanted)
  const query = useInfiniteQuery({
    queryKey: ['organizations', 'tokens', organization.id, status],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: after }) => {
      const query = { limit: 50, ...(status ? { status } : {}), ...(after ? { after } : {}) }
      return dataOf(api.GET('/api/organizations/{organization}/tokens', { params: { path, query } }))
    },
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  })
  useLiveRefresh(['token.'], ['organizations', 'tokens'])
  const mayChange = can('admin:write') && organization.status !== 'deleted'
  const columns = useMemo(
    () => tokenColumns(session.token.id, mayChange ? (action, token) => setDialog({ action, token }) : undefined),
    [session.token.id, mayChange],
  )
  const rows = useMemo(() => query.data?.pages.flatMap(({ tokens }) => tokens) ?? [], [query.data])
  return (
    <Section
      title={text.title}
      actions={
        mayChange && (
          <Button primary icon={Plus} onClick={() => setDialog({ action: 'create' })}>
            {text.create}
          </Button>
        )
      }
    >
      <div className="mb-3 w-44">
        <SelectField
          label={text.statusLabel}
          value={status ?? 'all'}
          onChange={event => setParams({ status: event.target.value }, { replace: true })}
          options={[...statuses.map(value => ({ value, name: text.status[value] })), { value: 'all', name: text.any }]}
        />
      </div>
      <Queried query={query} lines={5}>
        {() =>
          rows.length === 0 ? (
            <Empty title={status ? text.none(text.status[status]) : text.noneAtAll}>
              <p>{text.noneHint}</p>
            </Empty>
          ) : (
            <Table label={text.title} columns={columns} rows={rows} rowKey={({ id }) => id} />
          )
        }
      </Queried>
      {query.hasNextPage && (
        <Button className="mt-3" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {shellText.more}
        </Button>
      )}
      {dialog && (
        <TokenDialog {...dialog} organization={organization} close={() => setDialog(undefined)} show={setSecret} />
      )}
      {secret && <SecretDialog {...secret} close={() => setSecret(undefined)} />}
    </Section>
  )
}

type TokenDialogProps = ({ action: 'create'; token?: undefined } | { action: Action; token: Token }) & {
  organization: Schema<'Organization'>
  close: () => void
  /** Shows a new secret. */
  show: (secret: Secret) => void
}

function TokenDialog({ action, token, organization, close, show }: TokenDialogProps) {
  const { session } = useSession()
  const queries = useQueryClient()
  const announce = useAnnounce()
  const path = { organization: organization.id }
  function changed(): void {
    void queries.invalidateQueries({ queryKey: ['organizations', 'tokens', organization.id] })
    close()
  }
  if (action === 'create')
    return (
      <TokenForm
        title={text.createTitle(organization.name)}
        action={text.create}
        close={close}
        save={async form => {
          const body = createBody(form, nowSeconds())
          const created = await dataOf(api.POST('/api/organizations/{organization}/tokens', { params: { path }, body }))
          changed()
          show({ name: created.token.name, secret: created.secret })
        }}
      />
    )
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
      <RotateDialog
        name={name}
        own={id === session.token.id}
        close={close}
        rotate={async overlap_seconds => {
          const body = { overlap_seconds }
          const rotated = await dataOf(
            api.POST('/api/organizations/{organization}/tokens/{id}/rotate', { params, body }),
          )
          changed()
          show({ name, secret: rotated.secret })
        }}
      />
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

/** Asks how long the old secret works beside the new one. */
export function RotateDialog({
  name,
  own,
  rotate,
  close,
}: {
  name: string
  /** The session stands for this token, and ends with its old secret. */
  own: boolean
  rotate: (overlapSeconds: number) => Promise<unknown>
  close: () => void
}) {
  const { mutate, error, isPending } = useMutation({ mutationFn: rotate })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    mutate(Number(new FormData(event.currentTarget).get('overlap')))
  }
  return (
    <Dialog title={text.rotateTitle(name)} close={close}>
      <form onSubmit={submit} className="space-y-4">
        <p>{text.rotateText}</p>
        {own && <Notice kind="warning">{text.rotateOwn}</Notice>}
        {error && <Failed failure={error} />}
        <SelectField
          label={text.overlap}
          name="overlap"
          options={Object.entries(text.overlaps).map(([value, name]) => ({ value, name }))}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{shellText.cancel}</Button>
          <Button primary type="submit" busy={isPending}>
            {text.rotateAct}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

export interface Secret {
  name: string
  secret: string
}

/** A secret, which the server does not store. It leaves the page when the dialog is closed. */
export function SecretDialog({ name, secret, close }: Secret & { close: () => void }) {
  return (
    <Dialog title={text.secretTitle(name)} close={close}>
      <Notice kind="warning">{text.secret}</Notice>
      <div className="flex items-end gap-1">
        <div className="min-w-0 flex-1">
          <TextArea
            label={text.secretLabel}
            readOnly
            rows={3}
            value={secret}
            spellCheck={false}
            onFocus={event => event.target.select()}
            className="font-mono break-all"
          />
        </div>
        <CopyButton value={secret} label={text.copy} />
      </div>
      <div className="flex justify-end">
        <Button primary onClick={close}>
          {text.done}
        </Button>
      </div>
    </Dialog>
  )
}
