import { ClipboardList, Copy, Download, History, type LucideIcon, Play, Plus, Trash2 } from 'lucide-react'
import { useDeferredValue, useMemo, useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { api, at, dataOf, refresh, type Schema, usePages, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { ButtonLink, IconButton, TextLink } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { downloadWorkflow } from '../../components/download.ts'
import { SearchField } from '../../components/fields.tsx'
import { loaded } from '../../components/loaded.tsx'
import { Empty, MoreButton, PageHeading, Queried } from '../../components/page.tsx'
import { type Column, columnsOf, Table } from '../../components/table.tsx'
import { TagFilter, TagLinks, tagsOf } from '../../components/tags.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress, useSearch } from '../../components/use-address.ts'
import { shellText } from '../../text/shell.ts'
import { workflowsText } from '../../text/workflows.ts'
import { dropDraft } from '../editor/drafts.ts'

type Workflow = Schema<'Workflow'>

/** The workflows of the organization, last changed first. */
function WorkflowList() {
  const { can, session } = useSession()
  const [, go] = useLocation()
  const [deleting, setDeleting] = useState<Workflow>()
  const [search, setSearch] = useSearch()
  const asked = useDeferredValue(search)
  const [params] = useAddress()
  const tag = params.get('tag') ?? undefined
  const query = usePages(
    ['workflows', 'list', asked, tag],
    after => api.GET('/api/workflows', { params: { query: { limit: 50, q: asked || undefined, tag, after } } }),
    true,
  )
  const write = can('user:write')
  const { mutate: duplicate, isPending: duplicating } = useAction(
    ({ id }: Workflow) => dataOf(api.POST('/api/workflows/{id}/duplicate', { params: { path: { id } }, body: {} })),
    ({ workflow }) => workflowsText.duplicated(workflow.name),
    ['workflows'],
  )

  const columns = useMemo((): readonly Column<Workflow>[] => {
    const save = async ({ id, name }: Workflow) => {
      try {
        const [{ sourceOf }, read] = await Promise.all([
          import('../editor/document/source.ts'),
          dataOf(api.GET('/api/workflows/{id}', at({ id }))),
        ])
        downloadWorkflow(name, sourceOf(read.workflow))
      } catch (thrown) {
        announce('bad', (thrown as Error).message)
      }
    }
    const button = (
      workflow: Workflow,
      verb: 'form' | 'versions' | 'export' | 'run' | 'duplicate' | 'delete',
      icon: LucideIcon,
      press: () => void,
    ) => (
      <IconButton
        icon={icon}
        danger={verb === 'delete'}
        label={workflowsText.actionOn(workflowsText[verb], workflow.name)}
        onClick={press}
      />
    )
    return columnsOf(workflowsText, {
      name: ({ id, name, description, tags }) => (
        <>
          <TextLink href={`/workflows/${id}`} className="font-medium underline" label={name} />
          {description && <span className="text-muted line-clamp-1 block text-xs">{description}</span>}
          <TagLinks path="/workflows" tags={tags} />
        </>
      ),
      version: { number: true, show: 'version' },
      changed: ({ updated_at }) => <Time at={updated_at} />,
      actions: workflow => (
        <span className="flex flex-wrap justify-end md:justify-start">
          {button(workflow, 'form', ClipboardList, () => go(`/workflows/${workflow.id}/form`))}
          {button(workflow, 'versions', History, () => go(`/workflows/${workflow.id}/versions`))}
          {button(workflow, 'export', Download, () => void save(workflow))}
          {write && button(workflow, 'run', Play, () => go(`/workflows/${workflow.id}?run`))}
          {write && button(workflow, 'duplicate', Copy, () => duplicating || duplicate(workflow))}
          {write && button(workflow, 'delete', Trash2, () => setDeleting(workflow))}
        </span>
      ),
    })
  }, [duplicate, duplicating, go, write])

  const create = write && <ButtonLink primary href="/workflows/new" icon={Plus} label={workflowsText.create} />
  return (
    <>
      <PageHeading title={shellText.pages.workflows} actions={create} about={workflowsText.about} />
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <SearchField value={search} label={workflowsText.search} change={setSearch} />
        <div className="w-48">
          <TagFilter known={tagsOf(query.data?.pages.flatMap(({ workflows }) => workflows) ?? [])} />
        </div>
      </div>
      <Queried query={query} lines={5}>
        {({ pages }) => {
          const rows = pages.flatMap(({ workflows }) => workflows)
          if (rows.length === 0)
            return asked || tag ? (
              <Empty title={tag ? workflowsText.noTagMatch : workflowsText.noMatch} />
            ) : (
              <Empty title={workflowsText.empty}>
                <p>{workflowsText.emptyNext}</p>
                {create}
              </Empty>
            )
          return <Table label={shellText.pages.workflows} columns={columns} rows={rows} rowKey="id" />
        }}
      </Queried>
      <div className="mt-3 text-center empty:hidden">
        <MoreButton query={query} />
      </div>
      {deleting && (
        <Confirm
          title={workflowsText.deleteTitle(deleting.name)}
          action={workflowsText.deleteAction}
          close={() => setDeleting(undefined)}
          act={async () => {
            const { id, name } = deleting
            await api.DELETE('/api/workflows/{id}', at({ id }, { force: 'true' }))
            dropDraft(session.token.id, id)
            announce('good', workflowsText.deleted(name))
            await refresh('workflows')
          }}
        >
          {workflowsText.deleteWhat}
        </Confirm>
      )}
    </>
  )
}

/** Graph, layout and YAML are loaded when a workflow is opened. */
const Editor = loaded(() => import('../editor/editor.tsx'))
const VersionList = loaded(() => import('./version-list.tsx'))
const FormPage = loaded(() => import('./form/form-page.tsx'))

export default function WorkflowsPage() {
  return (
    <Switch>
      <Route path="/workflows" component={WorkflowList} />
      <Route path="/workflows/:id/versions">{({ id }) => <VersionList id={id} />}</Route>
      <Route path="/workflows/:id/form">{({ id }) => <FormPage key={id} id={id} />}</Route>
      <Route path="/workflows/:id">{({ id }) => <Editor key={id} id={id} />}</Route>
    </Switch>
  )
}
