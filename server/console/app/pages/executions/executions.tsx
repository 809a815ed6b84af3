import { Route, Switch } from 'wouter'
import { ExecutionDetail } from './execution-detail.tsx'
import { ExecutionList } from './execution-list.tsx'

/** Executions: the list, and one execution below `/executions/<id>`. */
export default function ExecutionsPage() {
  return (
    <Switch>
      <Route path="/executions/:id">{({ id }) => <ExecutionDetail key={id} id={id} />}</Route>
      <Route>
        <ExecutionList />
      </Route>
    </Switch>
  )
}
