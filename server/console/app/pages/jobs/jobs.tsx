import { Route, Switch } from 'wouter'
import { JobDetail } from './job-detail.tsx'
import { JobList } from './job-list.tsx'

/** Jobs: the list, and one job below `/jobs/<id>`. */
export default function JobsPage() {
  return (
    <Switch>
      <Route path="/jobs/:id">{({ id }) => <JobDetail key={id} id={id} />}</Route>
      <Route>
        <JobList />
      </Route>
    </Switch>
  )
}
