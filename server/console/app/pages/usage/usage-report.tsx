import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Link, useSearchParams } from 'wouter'
import { api, dataOf } from '../../api/client.ts'
import { useSession } from '../../api/session.ts'
import { buttonClass } from '../../components/button.tsx'
import { SelectField } from '../../components/fields.tsx'
import { Empty, Notice, Queried, Section } from '../../components/page.tsx'
import { usageText } from '../../text/usage.ts'
import { Course } from './course.tsx'
import { readReport } from './read.ts'
import {
  bucketRows,
  bucketText,
  type Group,
  measuresIn,
  type Period,
  type Report,
  reportRows,
  reportWindow,
  zeroOf,
} from './report.ts'
import { UsageTable } from './usage-table.tsx'

type By = Exclude<Group, 'organization'>

/** The usage of one organization: its course over the period, and a table by group. */
export function UsageReport({ organization, period, by }: { organization: string; period: Period; by: By }) {
  const query = useQuery({
    queryKey: ['usage', 'report', organization, period, by],
    queryFn: () => readReport({ organization, period, by }),
    refetchInterval: 60_000,
  })
  return (
    <Queried query={query} lines={8}>
      {report => <Shown report={report} organization={organization} period={period} by={by} />}
    </Queried>
  )
}

function Shown({ report, organization, period, by }: { report: Report; organization: string; period: Period; by: By }) {
  const { can } = useSession()
  const [params, setParams] = useSearchParams()
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
  const tokens = useQuery({
    queryKey: ['usage', 'tokens', organization],
    enabled: by === 'token',
    queryFn: async () => {
      const path = { organization }
      const { tokens } = await dataOf(
        api.GET('/api/organizations/{organization}/tokens', { params: { path, query: { limit: 100 } } }),
      )
      return new Map(tokens.map(({ id, name }) => [id, name]))
    },
  })
  if (totals.requests + totals.jobs === 0)
    return (
      <div className="mb-6">
        <Empty title={usageText.none}>
          <p>{usageText.noneHint}</p>
          {can('user:write') && (
            <Link href="/playground" className={buttonClass()}>
              {usageText.playground}
            </Link>
          )}
        </Empty>
      </div>
    )
  const offered = measuresIn(totals)
  const preferred = totals.cost > 0 ? 'cost' : 'requests'
  const measure = offered.find(one => one === params.get('show')) ?? preferred
  const groupName = by === 'day' ? usageText.times[width] : usageText.groups[by]
  const name = (key: string) =>
    by === 'day' ? bucketText(Number(key), width) : (tokens.data?.get(key) ?? (key || usageText.noName))
  return (
    <>
      <Section
        title={usageText.chartTitle(usageText.columns[measure], usageText.times[width])}
        actions={
          <SelectField
            label={usageText.measure}
            value={measure}
            onChange={event =>
              setParams(
                before => {
                  const next = new URLSearchParams(before)
                  next.set('show', event.target.value)
                  return next
                },
                { replace: true },
              )
            }
            options={offered.map(value => ({ value, name: usageText.columns[value] }))}
          />
        }
      >
        <Course
          rows={buckets}
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
