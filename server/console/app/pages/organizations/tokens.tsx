import { useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useLiveRefresh, usePages } from '../../api/queries.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/code.tsx'
import { Confirm, Dialog, FormDialog } from '../../components/dialog.tsx'
import { optionsOf, SelectField, TextArea } from '../../components/fields.tsx'
import { Empty, MoreButton, Notice, Queried, Section } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { useAddress } from '../../components/use-address.ts'
import { tokensText as text } from '../../text/organizations.ts'
import { changeBody, createBody, type Token } from './token-body.ts'
import { type Action, tokenColumns } from './token-columns.tsx'
import { TokenForm } from './token-form.tsx'

const statuses = Object.keys(text.status) as Token['status'][]
const nowSeconds = () => Math.floor(Date.now() / 1_000)

/** The tokens of an organization. A new secret is shown once. */
export function Tokens({ organization }: { organization: Schema<'Organization'> }) {
  const { session, can } = useSession()
  const [params, change] = useAddress()
  const [dialog, setDialog] = useState<{ action: 'create' } | { action: Action; token: Token }>()
  const [secret, setSecret] = useState<Secret>()
  const path = { organization: organization.id }
  const wanted = params.get('status') ?? 'active'
  const status = statuses.find(one => one === wanted)
  const query = usePages(['organizations', 'tokens', organization.id, status], after =>
    api.GET('/api/organizations/{organization}/tokens', { params: { path, query: { limit: 50, status, after } } }),
  )
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
          change={one => change({ status: one })}
          options={[...optionsOf(text.status), { value: 'all', name: text.any }]}
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
      <MoreButton query={query} className="mt-3" />
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
          changed()
          show({ name, secret })
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

interface Secret {
  name: string
  secret: string
}

/** A secret, which the server does not store. It leaves the page when the dialog is closed. */
function SecretDialog({ name, secret, close }: Secret & { close: () => void }) {
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
