import { lazy, Suspense } from 'react'
import { Route, Switch } from 'wouter'
import { Loading } from '../../components/page.tsx'
import { WorkflowList } from './workflow-list.tsx'

/** Graph, layout and YAML are loaded when a workflow is opened. */
const Editor = lazy(() => import('../editor/editor.tsx'))
const VersionList = lazy(() => import('./version-list.tsx'))

export default function WorkflowsPage() {
  return (
    <Switch>
      <Route path="/workflows">
        <WorkflowList />
      </Route>
      <Route path="/workflows/:id/versions">
        {({ id }) => (
          <Suspense fallback={<Loading />}>
            <VersionList id={id} />
          </Suspense>
        )}
      </Route>
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
