import { Route, Switch, useParams } from 'wouter'
import { PageHeading } from '../../components/page-heading.tsx'
import { modelsText } from '../../text/models.ts'
import { shellText } from '../../text/shell.ts'
import { Configured } from './configured.tsx'
import { Details } from './details.tsx'

export default function Models() {
  return (
    <Switch>
      <Route path="/models/details/*">
        <OneModel />
      </Route>
      <Route>
        <PageHeading title={shellText.pages.models}>{modelsText.about}</PageHeading>
        <Configured />
      </Route>
    </Switch>
  )
}

function OneModel() {
  const { '*': id = '' } = useParams()
  return <Details key={id} id={id} />
}
