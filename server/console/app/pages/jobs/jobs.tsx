import { keepPreviousData } from '@tanstack/react-query'
import { type SyntheticEvent, useState } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { api, useAnswer, useSession } from '../../api/client.ts'
import { useLiveRefresh } from '../../api/live.ts'
import { useNames } from '../../api/names.ts'
import { useOrganizations } from '../../api/organizations.ts'
import type { paths } from '../../api/types.generated.ts'
import { pageOfId } from '../../components/addresses.ts'
import { ButtonLink } from '../../components/button.tsx'
import { SearchField } from '../../components/fields.tsx'
import { organizationOption } from '../../components/options.tsx'
import { Below, Empty, PageHeading, Queried } from '../../components/page.tsx'
import { PageButtons } from '../../components/paged-table.tsx'
import { WithPanel } from '../../components/panel.tsx'
import { useAddress } from '../../components/use-address.ts'
import { jobsText } from '../../text/jobs.ts'
import { shellText } from '../../text/shell.ts'
import { BulkBar } from './bulk-bar.tsx'
import { JobComparison } from './job-comparison.tsx'
import { JobDetail } from './job-detail.tsx'
import { createdQuery, type Filters, filtersOf, JobFilters } from './job-filters.tsx'
import { JobPanel } from './job-panel.tsx'
import { JobTable } from './job-table.tsx'

/** Searches the prompts, or opens a job by its id. */
function FindJob({ words, search }: { words: string; search: (words: string) => void }) {
  const [text, setText] = useState(words)
  const [, go] = useLocation()
  const open = (event: SyntheticEvent) => {
    event.preventDefault()
    const wanted = text.trim()
    const page = pageOfId(wanted)
    if (page === undefined) search(wanted)
    else go(page)
  }
  return (
    <form onSubmit={open} className="mb-3 flex">
      <SearchField value={text} change={setText} label={jobsText.find} />
    </form>
  )
}

type JobQuery = NonNullable<paths['/api/jobs']['get']['parameters']['query']>

const pageSize = 50
/** Milliseconds between reads while a job of the page runs: progress has no events in the stream of the organization. */
const progressMs = 2_000

/** Names by ids; undefined until they are read, or where they may not be. */
const namesOf = (all: readonly { id: string; name: string }[] | undefined) =>
  all && new Map(all.map(({ id, name }) => [id, name]))

/** A page of the list with these filters, read again when a job changes. */
function useJobs(filters: Filters, after: string | undefined) {
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
        // Events are those of the own organization.
        filters.organization || data?.jobs.some(({ status }) => status === 'processing') ? progressMs : false,
    },
  )
  useLiveRefresh(['job.'], ['jobs', 'list'])
  return query
}

/** Jobs, newest first, live, with the one that is open beside them. */
function JobList() {
  const [params, change] = useAddress('push')
  const { can, session } = useSession()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const filters = filtersOf(params)
  const after = params.get('after') ?? undefined
  const query = useJobs(filters, after)
  const showsTokens = can('admin:read') && !filters.organization
  const tokenIds = (showsTokens && query.data?.jobs.map(({ token_id }) => token_id)) || []
  const tokens = useNames(session.organization.id, tokenIds)
  const { data: organizations, isLoading } = useOrganizations()
  const others = organizations?.filter(({ id }) => id !== session.organization.id) ?? []
  const filter = (next: Filters) => {
    setChosen(new Set())
    change({ ...next, after: undefined, job: undefined })
  }
  const open = params.get('job') ?? undefined
  const openJob = (job: string | undefined) => change({ job })
  return (
    <>
      <PageHeading title={shellText.pages.jobs} about={jobsText.about} />
      <WithPanel
        panel={
          open !== undefined && (
            <JobPanel key={open} id={open} listed={query.data?.jobs.find(({ id }) => id === open)} open={openJob} />
          )
        }
      >
        <FindJob
          key={filters.q}
          words={filters.q ?? ''}
          search={q => filter({ q, ...(q ? { organization: undefined } : {}) })}
        />
        {/* Whether there is a filter for organizations decides where the others stand. */}
        <Below isSettled={!isLoading}>
          <JobFilters
            filters={filters}
            change={filter}
            organizations={
              others.length > 0 || filters.organization
                ? [{ id: 'all', name: jobsText.filters.allOrganizations }, ...others.map(organizationOption)]
                : undefined
            }
          />
        </Below>
        <Queried query={query} lines={8}>
          {({ jobs, next_cursor }) => (
            <>
              <BulkBar jobs={jobs.filter(({ id }) => chosen.has(id))} clear={() => setChosen(new Set())} />
              {jobs.length > 0 ? (
                <JobTable
                  jobs={jobs}
                  chosen={chosen}
                  setChosen={setChosen}
                  tokens={showsTokens ? tokens : undefined}
                  organizations={filters.organization ? namesOf(organizations) : undefined}
                />
              ) : Object.keys(filters).length > 0 || after !== undefined ? (
                <Empty title={jobsText.noMatch}>
                  {filters.q && <p>{jobsText.searchHelp}</p>}
                  {next_cursor !== null && <p>{jobsText.scanned}</p>}
                </Empty>
              ) : (
                <Empty title={jobsText.none}>
                  <p>{jobsText.noneHelp}</p>
                  {can('user:write') && <ButtonLink primary href="/playground" label={jobsText.openPlayground} />}
                </Empty>
              )}
              <PageButtons next={next_cursor} names={jobsText} />
            </>
          )}
        </Queried>
      </WithPanel>
    </>
  )
}

/** Jobs: the list, two of them compared, and one job below `/jobs/<id>`. */
export default function JobsPage() {
  useLiveRefresh(['job.'], ['jobs', 'one'])
  return (
    <Switch>
      <Route path="/jobs/compare" component={JobComparison} />
      <Route path="/jobs/:id">{({ id }) => <JobDetail key={id} id={id} />}</Route>
      <Route component={JobList} />
    </Switch>
  )
}
