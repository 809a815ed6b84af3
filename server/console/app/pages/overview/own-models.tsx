import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { modelHref } from '../../components/addresses.ts'
import { ModelStateView } from '../../components/model-state.tsx'
import { PageHeading, Queried, Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { overviewText } from '../../text/overview.ts'
import { shellText } from '../../text/shell.ts'
import { RecentFailures } from './failures.tsx'

const { columns: names } = overviewText

const columns: readonly Column<Schema<'ModelStatus'>>[] = [
  {
    name: names.model,
    show: ({ model_id: id }) => (
      <Link href={modelHref(id)} className="text-accent break-words hover:underline">
        {id}
      </Link>
    ),
  },
  { name: names.state, show: ({ status, reason }) => <ModelStateView status={status} reason={reason} /> },
  {
    name: names.queue,
    show: ({ queue_depth: waiting }) =>
      waiting === 0 ? (
        <span className="text-muted">{overviewText.nothingWaits}</span>
      ) : (
        overviewText.waiting(waiting, 0)
      ),
  },
]

/** The models that a session may use, for those who do not own the machine. */
export function OwnModels() {
  const query = useQuery({
    queryKey: ['overview', 'models'],
    queryFn: () => dataOf(api.GET('/api/model-status')),
    refetchInterval: 5_000,
  })
  return (
    <>
      <PageHeading title={shellText.pages.overview}>{overviewText.ownOnly}</PageHeading>
      <Section title={overviewText.models}>
        <Queried query={query}>
          {({ models }) => (
            <Table label={overviewText.models} columns={columns} rows={models} rowKey={({ model_id: id }) => id} />
          )}
        </Queried>
      </Section>
      <RecentFailures />
    </>
  )
}
