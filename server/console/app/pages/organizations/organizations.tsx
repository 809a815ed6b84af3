import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { ApiFailure, api, dataOf, type Schema, useSession } from '../../api/client.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { Failed, PageHeading, Queried } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { organizationsText as text } from '../../text/organizations.ts'
import { shellText } from '../../text/shell.ts'
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
export function OrganizationList() {
  const { can } = useSession()
  const [creating, setCreating] = useState(false)
  const query = useInfiniteQuery({
    queryKey: ['organizations', 'list'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: after }) =>
      dataOf(api.GET('/api/organizations', { params: { query: { limit: 50, ...(after ? { after } : {}) } } })),
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  })
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
      {query.hasNextPage && (
        <Button className="mt-3" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {shellText.more}
        </Button>
      )}
      {creating && <CreateOrganization close={() => setCreating(false)} />}
    </>
  )
}

function CreateOrganization({ close }: { close: () => void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [, go] = useLocation()
  const { mutate, error, isPending } = useMutation({
    mutationFn: (body: Schema<'OrganizationCreate'>) => dataOf(api.POST('/api/organizations', { body })),
    onSuccess: ({ organization: { id, name } }) => {
      void queries.invalidateQueries({ queryKey: ['organizations'] })
      announce('good', text.created(name))
      go(`/organizations/${id}`)
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const plan = formText(form, 'plan')
    mutate({ name: formText(form, 'name'), ...(plan === '' ? {} : { plan }) })
  }
  const param = error instanceof ApiFailure ? error.param : undefined
  const faultOf = (name: string) => (param === name ? error!.message : undefined)
  return (
    <Dialog title={text.create} close={close}>
      <form onSubmit={submit} className="space-y-4">
        {error && param !== 'name' && param !== 'plan' && <Failed failure={error} />}
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
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{shellText.cancel}</Button>
          <Button primary type="submit" busy={isPending}>
            {text.create}
          </Button>
        </div>
      </form>
    </Dialog>
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
