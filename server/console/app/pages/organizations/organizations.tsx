import { Route, Switch } from 'wouter'
import { useSession } from '../../api/session.ts'
import { Organization } from './organization.tsx'
import { OrganizationList } from './organization-list.tsx'

/** The organizations for the owner of the machine; for others their own one, with its tokens. */
export default function Organizations() {
  const { session } = useSession()
  return (
    <Switch>
      <Route path="/organizations/:id">{({ id }) => <Organization key={id} id={id} />}</Route>
      <Route>{session.owns_machine ? <OrganizationList /> : <Organization id={session.organization.id} />}</Route>
    </Switch>
  )
}
