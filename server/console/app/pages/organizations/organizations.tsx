import { Route, Switch } from 'wouter'
import { useSession } from '../../api/session.ts'
import { OrganizationPage } from './organization.tsx'
import { OrganizationList } from './organization-list.tsx'

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
