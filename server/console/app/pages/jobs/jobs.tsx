import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type SyntheticEvent, useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { api, type Schema, tasksQuery, useAnswer, useSession, useTokens } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import type { paths } from '../../api/types.generated.ts'
import { JobStatus } from '../../components/badge.tsx'
import { Button, ButtonLink, TextLink } from '../../components/button.tsx'
import { Cost } from '../../components/cost.tsx'
import { type Option, optionsOf, SearchField, SelectField, TextField } from '../../components/fields.tsx'
import { durationText } from '../../components/format.ts'
import { Empty, PageHeading, Queried } from '../../components/page.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { type Column, columnsOf } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { jobsText } from '../../text/jobs.ts'
import { shellText } from '../../text/shell.ts'
import { taskName } from '../../text/tasks.ts'
import { JobDetail } from './job-detail.tsx'

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

const columns: readonly Column<JobSummary>[] = columnsOf(jobsText.columns, {
  job: ({ id }) => <TextLink href={`/jobs/${id}`} className="font-mono text-xs break-all" label={id} />,
  status: job => <JobStatus status={job.status} progress={job.progress} />,
  model: 'model_id',
  task: { wideOnly: true, show: ({ task }) => taskName(task) },
  created: ({ created_at }) => <Time at={created_at} />,
  duration: {
    number: true,
    show: job => (job.metrics.run_ms === null ? waitOf(job) : durationText(job.metrics.run_ms)),
  },
  cost: { number: true, wideOnly: true, show: ({ cost }) => (cost ? <Cost of={cost} /> : '–') },
})

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
      <PageHeading title={shellText.pages.jobs} about={jobsText.about} />
      <FindJob />
      <JobFilters filters={filters} change={next => change({ ...next, after: undefined })} />
      <Queried query={query} lines={8}>
        {({ jobs, next_cursor }) => (
          <PagedTable
            label={shellText.pages.jobs}
            columns={columns}
            rows={jobs}
            rowKey="id"
            next={next_cursor}
            names={jobsText}
          >
            {filtered || after !== undefined ? (
              <Empty title={jobsText.noMatch}>{next_cursor !== null && jobsText.scanned}</Empty>
            ) : (
              <Empty title={jobsText.none}>
                <p>{jobsText.noneHelp}</p>
                {can('user:write') && <ButtonLink primary href="/playground" label={jobsText.openPlayground} />}
              </Empty>
            )}
          </PagedTable>
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
      <Route component={JobList} />
    </Switch>
  )
}

/** The filters of the list by their names in the address. */
const filterNames = ['status', 'task', 'model_id', 'token_id', 'since', 'from', 'until'] as const
type FilterName = (typeof filterNames)[number]
type Filters = Partial<Record<FilterName, string>>

const statuses = ['pending', 'processing', 'completed', 'failed', 'cancelled']
const { filters: text } = jobsText
/** A link may name what is no longer configured. */
const absent = (chosen: string | undefined, values: readonly Option[]): string[] =>
  !chosen || values.some(one => (typeof one === 'string' ? one : one.id) === chosen) ? [] : [chosen]
/** The value of `since` for the time between `from` and `until`, which are as people type them: `2026-01-31T09:30`. */
const between = 'between'

/** The filters of the list of jobs: what is set is in the address, so that the list can be linked to. */
function JobFilters({ filters, change }: { filters: Filters; change: (changes: Filters) => void }) {
  const { can, session } = useSession()
  const { data: tasks } = useQuery(tasksQuery)
  const tokens = useTokens(session.organization.id)
  const models = [...new Set((tasks?.tasks ?? []).flatMap(task => task.models))].sort()
  const select = (name: FilterName, label: string, values: readonly Option[]) => (
    <div className="min-w-32 flex-1">
      <SelectField
        label={label}
        value={filters[name] ?? ''}
        none={text.any}
        options={[...absent(filters[name], values), ...values]}
        change={value =>
          change({
            [name]: value,
            ...(name === 'since' && value !== between ? { from: undefined, until: undefined } : {}),
          })
        }
      />
    </div>
  )
  return (
    <fieldset className="mb-4 flex flex-wrap items-end gap-3">
      <legend className="sr-only">{text.label}</legend>
      {select('status', text.status, optionsOf(jobsText.statuses, statuses))}
      {select(
        'task',
        text.task,
        (tasks?.tasks ?? []).map(({ id, title }) => ({ id, name: title })),
      )}
      {select('model_id', text.model, models)}
      {can('admin:read') && select('token_id', text.token, tokens ?? [])}
      {select('since', text.since, [...optionsOf(text.times), { id: between, name: text.between }])}
      {filters.since === between &&
        (['from', 'until'] as const).map(name => (
          <div key={name} className="min-w-52 flex-1">
            <TextField
              label={text[name]}
              type="datetime-local"
              value={filters[name] ?? ''}
              change={value => change({ [name]: value })}
            />
          </div>
        ))}
      {Object.values(filters).some(Boolean) && (
        <Button
          onClick={() => change(Object.fromEntries(filterNames.map(name => [name, undefined])))}
          label={text.clear}
        />
      )}
    </fieldset>
  )
}

/** The part of a query that a time filter makes. Times are in Unix seconds. */
function createdQuery(
  { since, from, until }: Filters,
  nowMs: number,
): { created_after?: number; created_before?: number } {
  if (since === undefined) return {}
  if (since !== between) return { created_after: Math.floor(nowMs / 1_000) - Number(since) }
  const seconds = (text = '') => Math.floor(Date.parse(text) / 1_000) || undefined
  return { created_after: seconds(from), created_before: seconds(until) }
}
