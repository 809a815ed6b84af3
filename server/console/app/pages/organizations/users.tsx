import { Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import { api, at, dataOf, refresh, type Schema, usePages, useSession } from '../../api/client.ts'
import { namesKey } from '../../api/names.ts'
import { announce } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { Checkbox, nameField, optionsOf, SelectField, TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { countText } from '../../components/format.ts'
import { Empty, MoreButton, Queried, Section } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { usersText as text } from '../../text/users.ts'
import { RowActions } from './row-actions.tsx'
import { CreateToken } from './tokens.tsx'

type User = Schema<'User'>
type Action = 'change' | 'token' | 'remove'

/** The users of an organization with their roles. */
export function Users({ organization }: { organization: Schema<'Organization'> }) {
  const { can } = useSession()
  const [dialog, setDialog] = useState<{ action: 'create'; user?: undefined } | { action: Action; user: User }>()
  const path = { organization: organization.id }
  const query = usePages(['organizations', 'users', organization.id], after =>
    api.GET('/api/organizations/{organization}/members', at(path, { limit: 50, after })),
  )
  const mayChange = can('admin:write') && organization.status !== 'deleted'
  const columns = useMemo(
    () => userColumns(mayChange ? (action, user) => setDialog({ action, user }) : undefined),
    [mayChange],
  )
  const rows = useMemo(() => query.data?.pages.flatMap(({ users }) => users) ?? [], [query.data])
  const create = <Button primary icon={Plus} onClick={() => setDialog({ action: 'create' })} label={text.create} />
  const close = () => setDialog(undefined)
  return (
    <Section title={text.title} actions={mayChange && rows.length > 0 && create}>
      <p className="text-muted mb-3">{text.about}</p>
      <Queried query={query} lines={4}>
        {() =>
          rows.length === 0 ? (
            <Empty title={text.none}>
              <p>{text.noneHelp}</p>
              {mayChange && create}
            </Empty>
          ) : (
            <Table label={text.title} columns={columns} rows={rows} rowKey="id" />
          )
        }
      </Queried>
      <MoreButton query={query} className="mt-3" />
      {dialog?.action === 'token' ? (
        <CreateToken organization={organization} owner={dialog.user} close={close} />
      ) : dialog?.action === 'remove' ? (
        <RemoveUser organization={organization.id} user={dialog.user} close={close} />
      ) : (
        dialog && <UserForm organization={organization.id} user={dialog.user} close={close} />
      )}
    </Section>
  )
}

const roleKinds = { owner: 'active', admin: 'active', member: 'plain', viewer: 'plain' } as const

const userColumns = (act: ((action: Action, user: User) => void) | undefined): readonly Column<User>[] =>
  columnsOf(text.columns, {
    user: ({ name }) => <span className="font-medium">{name}</span>,
    email: ({ email }) => <span className="break-all">{email}</span>,
    role: ({ role }) => <Badge kind={roleKinds[role]}>{text.roles[role]}</Badge>,
    tokens: { number: true, show: ({ active_tokens }) => countText(active_tokens) },
    used: ({ last_used_at }) => (last_used_at === null ? text.never : <Time at={last_used_at} />),
    actions:
      act &&
      (user => (
        <RowActions
          offered={['token', 'change', 'remove']}
          names={text}
          danger="remove"
          labelOf={name => `${name}: ${user.name}`}
          act={action => act(action, user)}
        />
      )),
  })

/** Reads again what shows users, and the tokens that a change of them has changed. */
function changed(organization: string): void {
  void refresh('organizations')
  void refresh(...namesKey(organization))
  void refresh('tokens', organization)
}

interface DialogProps {
  organization: string
  user: User
  close: () => void
}

const forceOf = (form: FormData) => (form.has('force') ? ({ force: 'true' } as const) : undefined)

const ForceField = () => <Checkbox label={text.force} hint={text.forceHint} name="force" />

/** What was done, and what became of the tokens of the user. */
const withTokens = (done: string, narrowed: number, revoked: number): string =>
  [done, narrowed > 0 && text.tokensNarrowed(narrowed), revoked > 0 && text.tokensRevoked(revoked)]
    .filter(Boolean)
    .join(' ')

/** The fields of a user, new or existing. */
function UserForm({ organization, user, close }: Omit<DialogProps, 'user'> & { user: User | undefined }) {
  const save = async (form: FormData) => {
    const name = formText(form, 'name')
    const body = { name, email: formText(form, 'email'), role: formText(form, 'role') as User['role'] }
    if (user) {
      const params = at({ organization, user: user.id }, forceOf(form))
      const call = api.PATCH('/api/organizations/{organization}/members/{user}', { ...params, body })
      const { tokens_narrowed: narrowed, tokens_revoked: revoked } = await dataOf(call)
      announce('good', withTokens(text.saved(name), narrowed, revoked))
    } else {
      await dataOf(api.POST('/api/organizations/{organization}/members', { ...at({ organization }), body }))
      announce('good', text.created(name))
    }
    changed(organization)
    close()
  }
  return (
    <FormDialog
      title={user ? text.changeTitle(user.name) : text.create}
      action={user ? text.save : text.create}
      save={save}
      close={close}
    >
      {faultOf => (
        <>
          <TextField label={text.name} {...nameField} defaultValue={user?.name} error={faultOf('name')} />
          <TextField
            label={text.email}
            name="email"
            type="email"
            required
            maxLength={254}
            autoComplete="off"
            defaultValue={user?.email}
            error={faultOf('email')}
          />
          <SelectField
            label={text.role}
            name="role"
            defaultValue={user?.role ?? 'member'}
            options={optionsOf(text.roleChoices)}
            error={faultOf('role')}
          />
          {user && (
            <>
              <p className="text-muted text-xs">{text.lowerRole}</p>
              <ForceField />
            </>
          )}
        </>
      )}
    </FormDialog>
  )
}

function RemoveUser({ organization, user: { id, name }, close }: DialogProps) {
  const save = async (form: FormData) => {
    const params = at({ organization, user: id }, forceOf(form))
    const call = api.DELETE('/api/organizations/{organization}/members/{user}', params)
    const { tokens_revoked: revoked } = await dataOf(call)
    announce('good', withTokens(text.removed(name), 0, revoked))
    changed(organization)
    close()
  }
  return (
    <FormDialog
      title={text.removeTitle(name)}
      action={text.removeAct}
      about={<p>{text.removeText}</p>}
      save={save}
      close={close}
    >
      {() => <ForceField />}
    </FormDialog>
  )
}
