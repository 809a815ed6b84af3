import { keepPreviousData } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Link, Route, Switch } from 'wouter'
import { api, type Schema, useAnswer } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { JobStatus } from '../../components/badge.tsx'
import { Button, ButtonLink, TextLink } from '../../components/button.tsx'
import { Cost } from '../../components/cost.tsx'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { knownDuration } from '../../components/format.ts'
import { loaded } from '../../components/loaded.tsx'
import { Empty, Notice, PageHeading, Queried } from '../../components/page.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { type Column, columnsOf } from '../../components/table.tsx'
import { TagFilter, TagLinks, tagsOf } from '../../components/tags.tsx'
import { Time } from '../../components/time.tsx'
import { addressWith, useAddress } from '../../components/use-address.ts'
import { executionsText as text } from '../../text/executions.ts'
import { jobsText } from '../../text/jobs.ts'
import { shellText } from '../../text/shell.ts'
import { compareHref } from './compare/comparison.ts'
import { ExecutionDetail } from './execution-detail.tsx'
import { WorkflowName } from './workflow-name.tsx'

type Summary = Schema<'ExecutionSummary'>

const path = '/executions'
const pageSize = 50

const columns: readonly Column<Summary>[] = columnsOf(text.columns, {
  execution: ({ id }) => <TextLink href={`/executions/${id}`} className="font-mono text-xs break-all" label={id} />,
  status: ({ status }) => <JobStatus status={status} />,
  workflow: ({ workflow_id, workflow_name, tags }) => (
    <>
      {workflow_id === null ? (
        <span className="text-muted">{text.unsaved}</span>
      ) : (
        <Link href={`/workflows/${workflow_id}`} className="hover:underline">
          {workflow_name}
        </Link>
      )}
      <TagLinks path={path} tags={tags} />
    </>
  ),
  nodes: {
    number: true,
    show: ({ progress }) => text.nodesOf(progress),
  },
  started: ({ created_at }) => <Time at={created_at} />,
  duration: { number: true, show: ({ duration_ms }) => knownDuration(duration_ms) },
  cost: { number: true, wideOnly: true, show: ({ cost }) => (cost > 0 ? <Cost of={cost} /> : '–') },
})

/** Chooses the first of two executions to compare, and then, when there is a `first`, the second. */
const compareColumn = (first: string | undefined, address: string): Column<Summary> => ({
  name: text.columns.compare,
  show: ({ id }) => {
    if (id === first) return <span className="text-muted">{text.compare.chosen}</span>
    const [href, label] =
      first === undefined
        ? [addressWith(path, new URLSearchParams(address), { compare: id }), text.compare.this(id)]
        : [compareHref(first, id), text.compare.and(first, id)]
    return <TextLink href={href} aria-label={label} label={text.columns.compare} />
  },
})

/** Executions of the organization or of one workflow, newest first, live. */
function ExecutionList() {
  const [params, change] = useAddress('push')
  const status = params.get('status') ?? undefined
  const workflow = params.get('workflow') ?? undefined
  const tag = params.get('tag') ?? undefined
  const after = params.get('after') ?? undefined
  const first = params.get('compare') ?? undefined
  const address = params.toString()
  const shown = useMemo(() => [...columns, compareColumn(first, address)], [first, address])
  const query = useAnswer(
    ['executions', 'list', status, workflow, tag, after],
    (): Promise<{ data?: Schema<'ExecutionPage'> }> => {
      const filter = { status: status as Summary['status'] | undefined, tag, limit: pageSize, after }
      return workflow === undefined
        ? api.GET('/api/workflow-executions', { params: { query: filter } })
        : api.GET('/api/workflows/{id}/executions', { params: { path: { id: workflow }, query: filter } })
    },
    { placeholderData: keepPreviousData },
  )
  useLiveRefresh(['workflow_execution.'], ['executions', 'list'])
  return (
    <>
      <PageHeading title={shellText.pages.executions} about={text.about} />
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <div className="w-48">
          <SelectField
            label={text.filterStatus}
            value={status ?? ''}
            none={text.any}
            options={optionsOf(jobsText.statuses, text.statuses)}
            change={value => change({ status: value, after: undefined })}
          />
        </div>
        <div className="w-48">
          <TagFilter known={tagsOf(query.data?.executions ?? [])} />
        </div>
        {workflow !== undefined && (
          <>
            <Button onClick={() => change({ workflow: undefined, after: undefined })} label={text.allWorkflows} />
            <span className="pb-2">
              {text.filterWorkflow} <WorkflowName id={workflow} />
            </span>
          </>
        )}
      </div>
      {first !== undefined && (
        <Notice kind="info" className="mb-4">
          <span className="min-w-0">
            {text.compare.choose} <span className="font-mono text-xs break-all">{first}</span>
          </span>
          <Button small onClick={() => change({ compare: undefined })} label={text.cancelComparison} />
        </Notice>
      )}
      <Queried query={query} lines={6}>
        {({ executions, next_cursor }) => (
          <PagedTable
            label={shellText.pages.executions}
            columns={shown}
            rows={executions}
            rowKey="id"
            next={next_cursor}
            names={text}
          >
            {[status, workflow, tag, after].some(Boolean) ? (
              <Empty title={text.noMatch} />
            ) : (
              <Empty title={text.none}>
                <p>{text.noneHelp}</p>
                <ButtonLink primary href="/workflows" label={text.openWorkflows} />
              </Empty>
            )}
          </PagedTable>
        )}
      </Queried>
    </>
  )
}

/** The comparison is loaded when it is opened. */
const ComparePage = loaded(() => import('./compare/compare.tsx'))

/** Executions: the list, one execution below `/executions/<id>`, and two that are compared. */
export default function ExecutionsPage() {
  return (
    <Switch>
      <Route path="/executions/:first/compare/:second">
        {({ first, second }) => <ComparePage key={`${first} ${second}`} first={first} second={second} />}
      </Route>
      <Route path="/executions/:id">{({ id }) => <ExecutionDetail key={id} id={id} />}</Route>
      <Route component={ExecutionList} />
    </Switch>
  )
}
