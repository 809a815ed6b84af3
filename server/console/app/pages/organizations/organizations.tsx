import { ChartColumn, Plus, ScrollText } from 'lucide-react'
import { useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { api, at, dataOf, refresh, type Schema, useAnswer, usePages, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { OrganizationBudget } from '../../components/budget.tsx'
import { Button, ButtonLink, TextLink } from '../../components/button.tsx'
import { Confirm, FormDialog } from '../../components/dialog.tsx'
import { nameField, TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { MoreButton, Notice, PageHeading, Queried, useBeginning } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { organizationsText as text } from '../../text/organizations.ts'
import { CallStorageSetting } from './call-storage.tsx'
import { Tokens } from './tokens.tsx'
import { Users } from './users.tsx'

type Organization = Schema<'Organization'>

const statusKinds = { active: 'good', suspended: 'warning', deleted: 'plain' } as const

const columns: readonly Column<Organization>[] = columnsOf(text.columns, {
  name: ({ id, name }) => <TextLink href={`/organizations/${id}`} className="font-medium" label={name} />,
  status: ({ status }) => <Badge kind={statusKinds[status]}>{text.status[status]}</Badge>,
  plan: 'plan',
  created: ({ created_at }) => <Time at={created_at} />,
})

/** All organizations of the machine. */
function OrganizationList() {
  const { can } = useSession()
  const [creating, setCreating] = useState(false)
  const query = usePages(['organizations', 'list'], after =>
    api.GET('/api/organizations', { params: { query: { limit: 50, after } } }),
  )
  return (
    <>
      <PageHeading
        title={text.title}
        actions={
          can('admin:write') && <Button primary icon={Plus} onClick={() => setCreating(true)} label={text.create} />
        }
        about={text.about}
      />
      <Queried query={query} lines={5}>
        {({ pages }) => (
          <Table
            label={text.list}
            columns={columns}
            rows={pages.flatMap(({ organizations }) => organizations)}
            rowKey="id"
          />
        )}
      </Queried>
      <MoreButton query={query} className="mt-3" />
      {creating && <CreateOrganization close={() => setCreating(false)} />}
    </>
  )
}

function CreateOrganization({ close }: { close: () => void }) {
  const [, go] = useLocation()
  const save = async (form: FormData) => {
    const body = { name: formText(form, 'name'), plan: formText(form, 'plan') || undefined }
    const { organization } = await dataOf(api.POST('/api/organizations', { body }))
    void refresh('organizations')
    announce('good', text.created(organization.name))
    go(`/organizations/${organization.id}`)
  }
  return (
    <FormDialog title={text.create} action={text.create} save={save} close={close}>
      {faultOf => (
        <>
          <TextField label={text.name} {...nameField} error={faultOf('name')} />
          <TextField label={text.plan} name="plan" hint={text.planHint} autoComplete="off" error={faultOf('plan')} />
        </>
      )}
    </FormDialog>
  )
}

/** The organizations for the owner of the machine; for others their own one, with its tokens. */
export default function OrganizationsPage() {
  const { session } = useSession()
  return (
    <Switch>
      <Route path="/organizations/:id">{({ id }) => <OrganizationPage key={id} id={id} />}</Route>
      <Route>{session.owns_machine ? <OrganizationList /> : <OrganizationPage id={session.organization.id} />}</Route>
    </Switch>
  )
}

/** One organization with its tokens. */
function OrganizationPage({ id }: { id: string }) {
  useBeginning()
  const query = useAnswer(['organizations', 'one', id], () =>
    api.GET('/api/organizations/{organization}', at({ organization: id })),
  )
  return (
    <Queried query={query} lines={6}>
      {({ organization }) => <Shown organization={organization} />}
    </Queried>
  )
}

function Shown({ organization }: { organization: Schema<'Organization'> }) {
  const { id, name, status } = organization
  const { session, can, ownerCan } = useSession()
  const [suspending, setSuspending] = useState(false)
  const [address, change] = useAddress()
  const part = address.get('part') === 'users' ? 'users' : 'tokens'
  const params = { path: { organization: id } }
  const resume = useAction(
    () => dataOf(api.POST('/api/organizations/{organization}/resume', { params })),
    () => text.resumed(name),
    ['organizations'],
  )
  // The organization that owns the machine cannot be suspended.
  const mayEnd = ownerCan('admin:write') && id !== session.organization.id
  return (
    <>
      <PageHeading
        title={name}
        actions={
          <>
            <ButtonLink
              href={session.owns_machine ? `/audit?organization=${id}` : '/audit'}
              icon={ScrollText}
              label={text.audit}
            />
            <ButtonLink
              href={session.owns_machine ? `/usage?organization=${id}` : '/usage'}
              icon={ChartColumn}
              label={text.usage}
            />
            {mayEnd && status === 'active' && (
              <Button danger onClick={() => setSuspending(true)} label={text.suspend} />
            )}
            {mayEnd && status === 'suspended' && (
              <Button busy={resume.isPending} onClick={() => resume.mutate()} label={text.resume} />
            )}
          </>
        }
        about={
          <>
            {text.plan} {organization.plan} · <code className="font-mono text-xs">{id}</code>
          </>
        }
      />
      {status !== 'active' && (
        <Notice kind="warning" className="mb-4">
          {status === 'suspended' ? text.suspendedNotice : text.deletedNotice}
        </Notice>
      )}
      <div className="mb-6 grid max-w-5xl items-start gap-4 md:grid-cols-2">
        {can('admin:read') && status !== 'deleted' && (
          <div className="bg-surface border-line rounded-lg border p-4">
            <OrganizationBudget organization={id} />
          </div>
        )}
        {status === 'active' && <CallStorageSetting organization={organization} />}
      </div>
      <Tabs
        label={text.tabs}
        names={text.parts}
        current={part}
        choose={one => change({ part: one === 'tokens' ? undefined : one, status: undefined })}
      >
        {part === 'users' ? <Users organization={organization} /> : <Tokens organization={organization} />}
      </Tabs>
      {suspending && (
        <Confirm
          title={text.suspendTitle(name)}
          action={text.suspend}
          close={() => setSuspending(false)}
          act={async () => {
            await dataOf(api.POST('/api/organizations/{organization}/suspend', { params }))
            void refresh('organizations')
            announce('good', text.suspended(name))
          }}
        >
          {text.suspendText}
        </Confirm>
      )}
    </>
  )
}
