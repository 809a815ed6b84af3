import { keepPreviousData } from '@tanstack/react-query'
import { Link, Route, Switch } from 'wouter'
import { api, type Schema, useAnswer } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { Button, TextLink } from '../../components/button.tsx'
import { Empty, PageHeading, Queried } from '../../components/page.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { type Column, columnsOf } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { approvalsText as text } from '../../text/approvals.ts'
import { shellText } from '../../text/shell.ts'
import { ApprovalDetail } from './approval-detail.tsx'

const columns: readonly Column<Schema<'Approval'>>[] = columnsOf(text.columns, {
  question: ({ id, title }) => <TextLink href={`/approvals/${id}`} className="break-words" label={title} />,
  workflow: ({ workflow_id, workflow_name }) =>
    workflow_id === null ? (
      workflow_name
    ) : (
      <Link href={`/workflows/${workflow_id}`} className="hover:underline">
        {workflow_name}
      </Link>
    ),
  node: ({ execution_id, node_id, item }) => (
    <Link href={`/executions/${execution_id}`} className="hover:underline">
      {text.nodeOf(node_id, item)}
    </Link>
  ),
  asked: ({ created_at }) => <Time at={created_at} />,
  until: ({ timeout_at }) => (timeout_at === null ? '–' : <Time at={timeout_at} />),
})

/** The open approvals of the organization, newest first, live. */
function ApprovalList() {
  const [params, change] = useAddress('push')
  const after = params.get('after') ?? undefined
  const execution = params.get('execution') ?? undefined
  const query = useAnswer(
    ['approvals', 'list', execution, after],
    () => api.GET('/api/approvals', { params: { query: { limit: 50, execution_id: execution, after } } }),
    { placeholderData: keepPreviousData },
  )
  useLiveRefresh(['workflow_execution.'], ['approvals', 'list'])
  return (
    <>
      <PageHeading title={shellText.pages.approvals} about={text.about} />
      {execution !== undefined && (
        <div className="mb-4 flex flex-wrap items-center gap-3">
          <Button onClick={() => change({ execution: undefined, after: undefined })} label={text.all} />
          <span className="min-w-0 break-words">
            {text.ofExecution} <TextLink href={`/executions/${execution}`} label={execution} />
          </span>
        </div>
      )}
      <Queried query={query} lines={4}>
        {({ approvals, next_cursor }) => (
          <PagedTable
            label={shellText.pages.approvals}
            columns={columns}
            rows={approvals}
            rowKey="id"
            next={next_cursor}
            names={text}
          >
            <Empty title={text.none}>
              <p>{text.noneHelp}</p>
            </Empty>
          </PagedTable>
        )}
      </Queried>
    </>
  )
}

/** Approvals: the list, and one approval below `/approvals/<id>`. */
export default function ApprovalsPage() {
  return (
    <Switch>
      <Route path="/approvals/:id">{({ id }) => <ApprovalDetail key={id} id={id} />}</Route>
      <Route component={ApprovalList} />
    </Switch>
  )
}
