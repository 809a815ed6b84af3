import { Link } from 'wouter'
import { api, type Schema } from '../../api/client.ts'
import { useAnswer, useLiveRefresh } from '../../api/queries.ts'
import { ModelLink } from '../../components/model.tsx'
import { Empty, Queried, Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { overviewText } from '../../text/overview.ts'
import { taskName } from '../../text/tasks.ts'

const shown = 5
const key = ['overview', 'failures']
const { failureColumns: names } = overviewText

const columns: readonly Column<Schema<'JobSummary'>>[] = [
  { name: names.when, show: ({ finished_at: at, updated_at: updated }) => <Time at={at ?? updated} /> },
  {
    name: names.work,
    show: ({ id, task }) => (
      <Link href={`/jobs/${id}`} className="text-accent hover:underline">
        {taskName(task)}
      </Link>
    ),
  },
  { name: names.model, show: ({ model_id: id }) => <ModelLink id={id} /> },
  { name: names.why, show: ({ error }) => error?.message ?? '–' },
]

/** The newest failed work of the organization. */
export function RecentFailures() {
  const query = useAnswer(key, () => api.GET('/api/jobs', { params: { query: { status: 'failed', limit: shown } } }), {
    refetchInterval: 30_000,
  })
  useLiveRefresh(['job.failed', 'snapshot'], key)
  return (
    <Section
      title={overviewText.failures}
      actions={
        <Link href="/jobs?status=failed" className="text-accent hover:underline">
          {overviewText.allFailures}
        </Link>
      }
    >
      <Queried query={query}>
        {({ jobs }) =>
          jobs.length === 0 ? (
            <Empty title={overviewText.noFailures}>{overviewText.noFailuresNext}</Empty>
          ) : (
            <Table label={overviewText.failures} columns={columns} rows={jobs} rowKey={({ id }) => id} />
          )
        }
      </Queried>
    </Section>
  )
}
