import { skipToken, type UseQueryResult, useQueries, useQuery } from '@tanstack/react-query'
import { memo, type ReactNode, useMemo, useState } from 'react'
import { type Schema, useSession } from '../../api/client.ts'
import { useAllTokenNames } from '../../api/tokens.ts'
import { Button, ButtonLink } from '../../components/button.tsx'
import { modelColour } from '../../components/colours.ts'
import { optionsOf, SelectField } from '../../components/fields.tsx'
import { ModelMark } from '../../components/marks.tsx'
import { Empty, Failed, Loading, Notice, Queried, Section } from '../../components/page.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { useAddress } from '../../components/use-address.ts'
import { shellText } from '../../text/shell.ts'
import { usageText } from '../../text/usage.ts'
import { readReport } from './read.ts'
import {
  amountOf,
  amountText,
  bucketRows,
  bucketText,
  type Group,
  type Measure,
  measuresIn,
  type Period,
  partsOf,
  plus,
  type Report,
  type Row,
  reportRows,
  reportWindow,
  type Sums,
  sorted,
  zeroOf,
} from './report.ts'

type By = Exclude<Group, 'organization'>

interface ReportOf {
  organization: string
  period: Period
  by: By
}

/** The usage of one organization, read once a minute; nothing if undefined. */
export const useReport = (of: ReportOf | undefined): UseQueryResult<Report> =>
  useQuery({
    queryKey: ['usage', 'report', of?.organization, of?.period, of?.by],
    queryFn: of ? () => readReport(of) : skipToken,
    refetchInterval: 60_000,
  })

/** The usage of one organization: its course over the period, and a table by group. */
export const UsageReport = ({ query, ...of }: ReportOf & { query: UseQueryResult<Report> }) => (
  <Queried query={query} lines={8}>
    {report => <Shown report={report} {...of} />}
  </Queried>
)

function Shown({ report, organization, period, by }: ReportOf & { report: Report }) {
  const { can } = useSession()
  const [params, change] = useAddress()
  const { currency, totals } = report
  const { width } = reportWindow(period, 0)
  const buckets = useMemo(() => bucketRows(report.buckets, zeroOf(totals)), [report, totals])
  const rows = useMemo(
    () =>
      by === 'day'
        ? buckets.filter(({ sums }) => sums.requests + sums.jobs > 0).toReversed()
        : reportRows(report.buckets, by),
    [report, buckets, by],
  )
  const tokens = useAllTokenNames(organization, by === 'token')
  const offered = measuresIn(totals)
  const preferred = totals.cost > 0 ? 'cost' : 'requests'
  const measure = offered.find(one => one === params.get('show')) ?? preferred
  const course = useMemo(() => partsOf(buckets, report.buckets, measure, by), [buckets, report, measure, by])
  if (totals.requests + totals.jobs === 0)
    return (
      <div className="mb-6">
        <Empty title={usageText.none}>
          <p>{usageText.noneHint}</p>
          {can('user:write') && <ButtonLink href="/playground" label={usageText.playground} />}
        </Empty>
      </div>
    )
  const groupName = by === 'day' ? usageText.times[width] : usageText.groups[by]
  const name = (key: string) =>
    by === 'day' ? (
      bucketText(Number(key), width)
    ) : by === 'model' && key ? (
      <span className="inline-flex items-center gap-1.5">
        <ModelMark id={key} />
        {key}
      </span>
    ) : (
      (tokens?.get(key) ?? (key || usageText.noName))
    )
  return (
    <>
      <Section
        title={usageText.chartTitle(usageText.columns[measure], usageText.times[width])}
        actions={
          <SelectField
            label={usageText.measure}
            value={measure}
            change={show => change({ show })}
            options={optionsOf(usageText.columns, offered)}
          />
        }
      >
        <Course
          rows={course}
          measure={measure}
          width={width}
          currency={currency}
          label={usageText.chart(usageText.columns[measure], usageText.periods[period])}
        />
      </Section>
      <Section title={usageText.table(groupName)}>
        {report.has_more && (
          <Notice kind="warning" className="mb-2">
            {usageText.unfinished}
          </Notice>
        )}
        <UsageTable by={groupName} rows={rows} totals={totals} currency={currency} name={name} />
      </Section>
    </>
  )
}

interface CourseProps {
  rows: ReturnType<typeof partsOf>
  measure: Measure
  width: '1h' | '1d' | 'month'
  currency: string
  label: string
}

/** Bars of one figure over the buckets of the period, stacked by model where there are parts. The table has the same in words. */
const Course = memo(function Course({ rows, measure, width, currency, label }: CourseProps) {
  const sums = rows.map(({ parts }) => parts.reduce((sum, { amount }) => sum + amount, 0))
  const most = Math.max(...sums, 0)
  const partText = (model: string | null, amount: number) =>
    `${model === null ? '' : `${model || usageText.noName}: `}${amountText(amount, measure, currency)}`
  return (
    <div className="bg-surface border-line rounded-lg border p-3">
      <div className="text-muted mb-1 text-right text-xs tabular-nums">{amountText(most, measure, currency)}</div>
      <div role="img" aria-label={label} className="flex h-30 items-end gap-0.5">
        {rows.map(({ key, parts }, at) => (
          <div
            key={key}
            title={[
              `${bucketText(Number(key), width)}: ${amountText(sums[at]!, measure, currency)}`,
              ...(parts.length > 1 ? parts.map(({ model, amount }) => partText(model, amount)) : []),
            ].join('\n')}
            className="flex h-full min-w-0 flex-1 flex-col-reverse"
          >
            {parts
              .filter(({ amount }) => amount > 0)
              .map(({ model, amount }) => (
                <div
                  key={model}
                  className={`min-h-0.5 shrink-0 last:rounded-t-xs ${model ? modelColour(model) : 'bg-accent'}`}
                  style={{ height: `${(100 * amount) / most}%` }}
                />
              ))}
          </div>
        ))}
      </div>
      <div className="border-line text-muted flex justify-between border-t pt-1 text-xs">
        {rows.length > 0 && <span>{bucketText(Number(rows[0]!.key), width)}</span>}
        {rows.length > 1 && <span>{bucketText(Number(rows.at(-1)!.key), width)}</span>}
      </div>
    </div>
  )
})

/** The row of a group, or of all together. */
type TableRow = Row & { total?: boolean }

interface UsageTableProps {
  by: string
  rows: readonly Row[]
  totals: Sums
  currency: string
  name: (key: string) => ReactNode
}

/** The figures of each group, with their sum in the last row. Columns that are 0 everywhere are left out. */
function UsageTable({ by, rows, totals, currency, name }: UsageTableProps) {
  const shown = useMemo<TableRow[]>(() => [...rows, { key: '', sums: totals, total: true }], [rows, totals])
  const columns: Column<TableRow>[] = [
    { name: by, show: row => (row.total ? <strong>{usageText.total}</strong> : name(row.key)) },
    ...measuresIn(totals).map(measure => ({
      name: usageText.columns[measure],
      number: true,
      show: (row: TableRow) => {
        const text = amountText(amountOf(row.sums, measure), measure, currency)
        return row.total ? <strong>{text}</strong> : text
      },
    })),
  ]
  return (
    <Table
      label={usageText.table(by)}
      columns={columns}
      rows={shown}
      rowKey={row => (row.total ? '' : `group ${row.key}`)}
    />
  )
}

/** Each of them is a request of its own. */
const organizationsAtOnce = 100

/** The usage of each organization, for the owner of the machine. */
export function OrganizationUsage({
  period,
  organizations: all,
}: {
  period: Period
  organizations: readonly Schema<'Organization'>[]
}) {
  const [most, setMost] = useState(organizationsAtOnce)
  const organizations = all.slice(0, most)
  const reports = useQueries({
    queries: organizations.map(({ id }) => ({
      queryKey: ['usage', 'report', id, period, 'day'],
      queryFn: () => readReport({ organization: id, period, by: 'day' }),
    })),
    combine: results => ({
      // What is shown stays while more of it comes.
      data: results.flatMap(({ data }) => data ?? []),
      error: results.find(({ error }) => error)?.error,
      refetch: () => void results.map(({ error, refetch }) => error && refetch()),
    }),
  })
  const names = useMemo(() => new Map(all.map(({ id, name }) => [id, name])), [all])
  const { data, error, refetch } = reports
  if (error) return <Failed failure={error} retry={refetch} />
  if (data.length < Math.min(organizations.length, organizationsAtOnce)) return <Loading lines={4} />
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
      {all.length > most && (
        <p className="mt-3 flex flex-wrap items-center gap-3">
          {usageText.someOrganizations(most, all.length)}
          <Button onClick={() => setMost(most + organizationsAtOnce)} label={shellText.more} />
        </p>
      )}
    </Section>
  )
}
