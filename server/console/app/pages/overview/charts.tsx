import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useMemo } from 'react'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { Queried, Section } from '../../components/page.tsx'
import { overviewText } from '../../text/overview.ts'

const TimeChart = lazy(() => import('../../components/time-chart.tsx'))

type Sample = Schema<'SystemHistory'>['samples'][number]
const key = ['overview', 'history']
const spanSeconds = 3_600
const intervalMs = 10_000
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })

/** Requests and tokens per second of the last hour. After the first answer only new samples are read. */
export function Charts() {
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const known = queries.getQueryData<Sample[]>(key) ?? []
      const after = known.at(-1)?.time ?? 0
      const { samples } = await dataOf(api.GET('/api/system/history', { params: { query: { after } } }))
      const all = [...known, ...samples]
      return all.slice(all.findIndex(({ time }) => time > (all.at(-1)?.time ?? 0) - spanSeconds))
    },
    refetchInterval: intervalMs,
    structuralSharing: false,
  })
  return (
    <Section title={overviewText.activity}>
      <Queried query={query} lines={7}>
        {samples => <ChartPair samples={samples} />}
      </Queried>
    </Section>
  )
}

function ChartPair({ samples }: { samples: readonly Sample[] }) {
  const charts = useMemo(
    () => [
      {
        name: overviewText.requests,
        series: [
          series(overviewText.ended, 'accent', samples, one => one.requests_per_second),
          series(overviewText.failed, 'bad', samples, one => one.failures_per_second),
        ],
      },
      {
        name: overviewText.tokens,
        series: [
          series(overviewText.generated, 'accent', samples, one => one.output_tokens_per_second),
          series(overviewText.prompt, 'warning', samples, one => one.input_tokens_per_second),
        ],
      },
    ],
    [samples],
  )
  const times = useMemo(() => (samples.length > 0 ? samples.map(({ time }) => time) : [Date.now() / 1_000]), [samples])
  return (
    <div className="grid gap-3 lg:grid-cols-2">
      {charts.map(({ name, series }) => (
        <div key={name} className="border-line bg-surface min-w-0 rounded-lg border p-3">
          <h3 className="mb-1 text-sm font-medium">{name}</h3>
          <div className="min-h-[10.25rem]">
            <Suspense fallback={null}>
              <TimeChart
                summary={summaryOf(name, series[0]!.values)}
                times={times}
                span={spanSeconds}
                series={series}
              />
            </Suspense>
          </div>
        </div>
      ))}
    </div>
  )
}

const series = (
  name: string,
  colour: 'accent' | 'warning' | 'bad',
  samples: readonly Sample[],
  of: (sample: Sample) => number,
) => ({ name, colour, values: samples.map(of) })

const summaryOf = (name: string, values: readonly number[]): string =>
  overviewText.chartSummary(name, number.format(values.at(-1) ?? 0), number.format(Math.max(0, ...values)))
