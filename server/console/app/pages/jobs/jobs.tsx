import { keepPreviousData } from '@tanstack/react-query'
import { type SyntheticEvent, useState } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { api, type Schema, useSession } from '../../api/client.ts'
import { useAnswer, useLiveRefresh } from '../../api/queries.ts'
import { type paths } from '../../api/types.generated.ts'
import { JobStatus } from '../../components/badge.tsx'
import { Button, buttonClass } from '../../components/button.tsx'
import { SearchField } from '../../components/fields.tsx'
import { costText, durationText } from '../../components/format.ts'
import { Empty, PageHeading, Queried } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { jobsText } from '../../text/jobs.ts'
import { shellText } from '../../text/shell.ts'
import { taskName } from '../../text/tasks.ts'
import { JobDetail } from './job-detail.tsx'
import { createdQuery, type Filters, filterNames, JobFilters } from './job-filters.tsx'

/** The page of an id that a person has, such as one from a log: of a job, a request or an execution. */
function pathOf(id: string): string {
  if (id.startsWith('exec_')) return `/executions/${id}`
  return `/jobs/${id.replace(/^q_/, 'job_')}`
}

/** Opens a job by its id. */
function FindJob() {
  const [id, setId] = useState('')
  const [, go] = useLocation()
  const open = (event: SyntheticEvent) => {
    event.preventDefault()
    if (id.trim() !== '') go(pathOf(id.trim()))
  }
  return (
    <form onSubmit={open} className="mb-3 flex">
      <SearchField value={id} change={setId} label={jobsText.find} />
    </form>
  )
}

type JobSummary = Schema<'JobSummary'>
type JobQuery = NonNullable<paths['/api/jobs']['get']['parameters']['query']>

const pageSize = 50
/** Milliseconds between reads while a job of the page runs: progress has no events in the stream of the organization. */
const progressMs = 2_000

const columns: readonly Column<JobSummary>[] = [
  {
    name: jobsText.columns.job,
    show: ({ id }) => (
      <Link href={`/jobs/${id}`} className="text-accent font-mono text-xs break-all hover:underline">
        {id}
      </Link>
    ),
  },
  { name: jobsText.columns.status, show: job => <JobStatus status={job.status} progress={job.progress} /> },
  { name: jobsText.columns.model, show: ({ model_id }) => model_id },
  { name: jobsText.columns.task, wideOnly: true, show: ({ task }) => taskName(task) },
  { name: jobsText.columns.created, show: ({ created_at }) => <Time at={created_at} /> },
  {
    name: jobsText.columns.duration,
    number: true,
    show: job => (job.metrics.run_ms === null ? waitOf(job) : durationText(job.metrics.run_ms)),
  },
  { name: jobsText.columns.cost, number: true, wideOnly: true, show: ({ cost }) => (cost ? costText(cost) : '–') },
]

/** What is known of a job that has not ended: its place, or when it will end. */
function waitOf({ queue_position, eta_seconds, status }: JobSummary): string {
  if (queue_position !== null) return jobsText.position(queue_position)
  if (eta_seconds !== null && status === 'processing') return jobsText.ends(durationText(eta_seconds * 1_000))
  return '–'
}

/** Jobs of the organization, newest first, live. */
function JobList() {
  const [params, change] = useAddress('push')
  const { can } = useSession()
  const filters: Filters = Object.fromEntries(
    filterNames.flatMap(name => (params.get(name) ? [[name, params.get(name)]] : [])),
  )
  const after = params.get('after') ?? undefined
  const { since: _since, from: _from, until: _until, ...equal } = filters
  const query = useAnswer(
    ['jobs', 'list', filters, after],
    () => {
      const asked = { ...equal, ...createdQuery(filters, Date.now()), limit: pageSize, after } as JobQuery
      return api.GET('/api/jobs', { params: { query: asked } })
    },
    {
      placeholderData: keepPreviousData,
      refetchInterval: ({ state: { data } }) =>
        data?.jobs.some(({ status }) => status === 'processing') ? progressMs : false,
    },
  )
  useLiveRefresh(['job.'], ['jobs', 'list'])
  const filtered = Object.keys(filters).length > 0
  return (
    <>
      <PageHeading title={shellText.pages.jobs}>{jobsText.about}</PageHeading>
      <FindJob />
      <JobFilters filters={filters} change={next => change({ ...next, after: undefined })} />
      <Queried query={query} lines={8}>
        {({ jobs, next_cursor }) => (
          <>
            {jobs.length > 0 ? (
              <Table label={shellText.pages.jobs} columns={columns} rows={jobs} rowKey={({ id }) => id} />
            ) : filtered || after !== undefined ? (
              <Empty title={jobsText.noMatch}>{next_cursor !== null && jobsText.scanned}</Empty>
            ) : (
              <Empty title={jobsText.none}>
                <p>{jobsText.noneHelp}</p>
                {can('user:write') && (
                  <Link href="/playground" className={buttonClass({ primary: true })}>
                    {jobsText.openPlayground}
                  </Link>
                )}
              </Empty>
            )}
            <div className="mt-3 flex gap-2">
              {after !== undefined && <Button onClick={() => change({ after: undefined })}>{jobsText.newest}</Button>}
              {next_cursor !== null && <Button onClick={() => change({ after: next_cursor })}>{jobsText.older}</Button>}
            </div>
          </>
        )}
      </Queried>
    </>
  )
}

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
