import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Route, Switch, useLocation, useParams } from 'wouter'
import { useSession } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { PageHeading } from '../../components/page.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { modelsText } from '../../text/models.ts'
import { shellText } from '../../text/shell.ts'
import { AddModel } from './add-model.tsx'
import { CatalogList } from './catalog.tsx'
import { Configured } from './configured.tsx'
import { Details } from './details.tsx'
import { Downloads } from './downloads.tsx'

const parts = { configured: '/models', catalog: '/models/catalog', downloads: '/models/downloads' } as const
type Part = keyof typeof parts
const all = Object.keys(parts) as Part[]

export default function ModelsPage() {
  return (
    <Switch>
      <Route path="/models/details/*">
        <OneModel />
      </Route>
      <Route>
        <ModelLists />
      </Route>
    </Switch>
  )
}

function OneModel() {
  const { '*': id = '' } = useParams()
  return <Details key={id} id={id} />
}

/** The configured models and, for the owner of the machine, the catalogue and the downloads. */
function ModelLists() {
  const { can, session } = useSession()
  const [path, go] = useLocation()
  const [adding, setAdding] = useState<string>()
  const isOwner = session.owns_machine && can('admin:read')
  const current = (isOwner && all.find(part => parts[part] === path)) || 'configured'
  const mayAdd = isOwner && can('admin:write')
  return (
    <>
      <PageHeading
        title={shellText.pages.models}
        actions={
          mayAdd && (
            <Button primary icon={Plus} onClick={() => setAdding('')}>
              {modelsText.add}
            </Button>
          )
        }
      >
        {modelsText.about}
      </PageHeading>
      {isOwner ? (
        <Tabs
          label={modelsText.parts}
          tabs={all.map(id => ({ id, name: modelsText[id] }))}
          current={current}
          choose={id => go(parts[id])}
        >
          {current === 'configured' && <Configured />}
          {current === 'catalog' && <CatalogList add={setAdding} />}
          {current === 'downloads' && <Downloads add={setAdding} />}
        </Tabs>
      ) : (
        <Configured />
      )}
      {adding !== undefined && <AddModel model={adding} close={() => setAdding(undefined)} />}
    </>
  )
}
