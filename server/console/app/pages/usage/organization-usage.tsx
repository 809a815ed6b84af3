import { useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Schema } from '../../api/client.ts'
import { Failed, Loading, Section } from '../../components/page.tsx'
import { usageText } from '../../text/usage.ts'
import { readReport } from './read.ts'
import { type Period, plus, sorted, zeroOf } from './report.ts'
import { UsageTable } from './usage-table.tsx'

/** The usage of each organization, for the owner of the machine. */
export function OrganizationUsage({
  period,
  organizations,
}: {
  period: Period
  organizations: readonly Schema<'Organization'>[]
}) {
  const reports = useQueries({
    queries: organizations.map(({ id }) => ({
      queryKey: ['usage', 'report', id, period, 'day'],
      queryFn: () => readReport({ organization: id, period, by: 'day' }),
    })),
    combine: results => ({
      data: results.every(({ data }) => data) ? results.map(({ data }) => data!) : undefined,
      error: results.find(({ error }) => error)?.error,
      refetch: () => void results.map(({ error, refetch }) => error && refetch()),
    }),
  })
  const names = useMemo(() => new Map(organizations.map(({ id, name }) => [id, name])), [organizations])
  const { data, error, refetch } = reports
  if (error) return <Failed failure={error} retry={refetch} />
  if (!data || data.length === 0) return <Loading lines={4} />
  const rows = sorted(data.map(({ organization_id, totals }) => ({ key: organization_id, sums: totals })))
  const totals = rows.map(({ sums }) => sums).reduce(plus, zeroOf(data[0]!.totals))
  return (
    <Section title={usageText.table(usageText.groups.organization)}>
      <UsageTable
        by={usageText.groups.organization}
        rows={rows}
        totals={totals}
        currency={data[0]!.currency}
        name={key => names.get(key) ?? key}
      />
    </Section>
  )
}
