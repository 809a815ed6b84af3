import { lazy, Suspense } from 'react'
import { Route, Switch } from 'wouter'
import { Loading } from '../../components/loading.tsx'
import { VersionList } from './version-list.tsx'
import { WorkflowList } from './workflow-list.tsx'

/** Graph and layout are loaded when a workflow is opened. */
const Editor = lazy(() => import('../editor/editor.tsx'))

export default function Workflows() {
  return (
    <Switch>
      <Route path="/workflows">
        <WorkflowList />
      </Route>
      <Route path="/workflows/:id/versions">{({ id }) => <VersionList id={id} />}</Route>
      <Route path="/workflows/:id">
        {({ id }) => (
          <Suspense fallback={<Loading />}>
            <Editor key={id} id={id} />
          </Suspense>
        )}
      </Route>
    </Switch>
  )
}
