import { Plus } from 'lucide-react'
import { useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { type Schema, useModels, useSession } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { SearchField } from '../../components/fields.tsx'
import { countText, sizeText } from '../../components/format.ts'
import { TaskLabels } from '../../components/marks.tsx'
import { ModelActions, ModelLink, ModelStateView } from '../../components/model.tsx'
import { Empty, PageHeading, Queried } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { useSearch } from '../../components/use-address.ts'
import { modelsText } from '../../text/models.ts'
import { shellText } from '../../text/shell.ts'
import { tasksText } from '../../text/tasks.ts'
import { CatalogList } from './catalog.tsx'
import { AddModel } from './change-models.tsx'
import { Details } from './details.tsx'
import { Downloads } from './downloads.tsx'
import { priceTexts } from './model-texts.ts'

const parts = { configured: '/models', catalog: '/models/catalog', downloads: '/models/downloads' } as const
type Part = keyof typeof parts
const all = Object.keys(parts) as Part[]

export default function ModelsPage() {
  return (
    <Switch>
      <Route path="/models/details/*">{({ '*': id }) => <Details key={id} id={id} />}</Route>
      <Route component={ModelLists} />
    </Switch>
  )
}

/** The configured models and, for the owner of the machine, the catalogue and the downloads. */
function ModelLists() {
  const { can, ownerCan } = useSession()
  const [path, go] = useLocation()
  const [adding, setAdding] = useState<string>()
  const isOwner = ownerCan('admin:read')
  const current = (isOwner && all.find(part => parts[part] === path)) || 'configured'
  const mayAdd = isOwner && can('admin:write')
  return (
    <>
      <PageHeading
        title={shellText.pages.models}
        actions={mayAdd && <Button primary icon={Plus} onClick={() => setAdding('')} label={modelsText.add} />}
        about={modelsText.about}
      />
      {isOwner ? (
        <Tabs label={modelsText.parts} names={modelsText} offered={all} current={current} choose={id => go(parts[id])}>
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

type Model = Schema<'ModelStatus'>
const muted = (text: string) => <span className="text-muted">{text}</span>

const columns: readonly Column<Model>[] = columnsOf(modelsText.columns, {
  model: ({ model_id: id, engine, profile_of: profile, adapter_of: adapter, aliases }) => (
    <>
      <ModelLink id={id} />
      <span className="text-muted block text-xs">
        {[engine, ...modelsText.names({ profile, adapter }, aliases)].join(', ')}
      </span>
    </>
  ),
  tasks: ({ tasks }) => <TaskLabels tasks={tasks} />,
  state: ModelStateView,
  context: {
    wideOnly: true,
    number: true,
    show: ({ context_length: tokens }) =>
      tokens === null ? muted('–') : <span className="whitespace-nowrap">{modelsText.tokens(countText(tokens))}</span>,
  },
  memory: {
    number: true,
    show: ({ memory_bytes: bytes }) =>
      bytes === null ? muted(modelsText.unknown) : <span className="whitespace-nowrap">{sizeText(bytes)}</span>,
  },
  price: {
    wideOnly: true,
    show: ({ price }) => {
      const texts = priceTexts(price)
      return texts.length === 0
        ? muted(modelsText.free)
        : texts.map(text => (
            <span key={text} className="block text-xs">
              {text}
            </span>
          ))
    },
  },
  actions: ({ model_id: id, status }) => <ModelActions id={id} status={status} />,
})

/** The models that the server offers. */
function Configured() {
  const query = useModels()
  const [search, setSearch] = useSearch()
  const words = search.trim().toLowerCase()
  return (
    <Queried query={query} lines={8}>
      {({ models }) => {
        const found = models.filter(({ model_id: id, engine, tasks }) =>
          `${id} ${engine} ${tasksText(tasks)}`.toLowerCase().includes(words),
        )
        if (models.length === 0) return <Empty title={modelsText.noModels}>{modelsText.noModelsNext}</Empty>
        return (
          <>
            <div className="mb-3 flex">
              <SearchField value={search} change={setSearch} label={modelsText.search} />
            </div>
            {found.length === 0 ? (
              <Empty title={modelsText.noMatch}>{modelsText.noMatchNext}</Empty>
            ) : (
              <Table label={modelsText.configured} columns={columns} rows={found} rowKey="model_id" />
            )}
          </>
        )
      }}
    </Queried>
  )
}
