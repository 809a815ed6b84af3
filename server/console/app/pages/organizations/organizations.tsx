import { useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { usePages } from '../../api/queries.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { MoreButton, PageHeading, Queried } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { organizationsText as text } from '../../text/organizations.ts'
import { OrganizationPage } from './organization.tsx'

type Organization = Schema<'Organization'>

const statusKinds = { active: 'good', suspended: 'warning', deleted: 'plain' } as const

const columns: readonly Column<Organization>[] = [
  {
    name: text.columns.name,
    show: ({ id, name }) => (
      <Link href={`/organizations/${id}`} className="text-accent font-medium hover:underline">
        {name}
      </Link>
    ),
  },
  {
    name: text.columns.status,
    show: ({ status }) => <Badge kind={statusKinds[status]}>{text.status[status]}</Badge>,
  },
  { name: text.columns.plan, show: ({ plan }) => plan },
  { name: text.columns.created, show: ({ created_at }) => <Time at={created_at} /> },
]

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
          can('admin:write') && (
            <Button primary icon={Plus} onClick={() => setCreating(true)}>
              {text.create}
            </Button>
          )
        }
      >
        {text.about}
      </PageHeading>
      <Queried query={query} lines={5}>
        {({ pages }) => (
          <Table
            label={text.list}
            columns={columns}
            rows={pages.flatMap(({ organizations }) => organizations)}
            rowKey={({ id }) => id}
          />
        )}
      </Queried>
      <MoreButton query={query} className="mt-3" />
      {creating && <CreateOrganization close={() => setCreating(false)} />}
    </>
  )
}

function CreateOrganization({ close }: { close: () => void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [, go] = useLocation()
  const save = async (form: FormData) => {
    const body = { name: formText(form, 'name'), plan: formText(form, 'plan') || undefined }
    const { organization } = await dataOf(api.POST('/api/organizations', { body }))
    void queries.invalidateQueries({ queryKey: ['organizations'] })
    announce('good', text.created(organization.name))
    go(`/organizations/${organization.id}`)
  }
  return (
    <FormDialog title={text.create} action={text.create} names={['name', 'plan']} save={save} close={close}>
      {faultOf => (
        <>
          <TextField
            label={text.name}
            name="name"
            required
            maxLength={128}
            autoFocus
            autoComplete="off"
            error={faultOf('name')}
          />
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
