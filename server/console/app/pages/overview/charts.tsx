import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api, dataOf, queryClient, type Schema } from '../../api/client.ts'
import { decimalText } from '../../components/format.ts'
import { loaded } from '../../components/loaded.tsx'
import { Queried, Section } from '../../components/page.tsx'
import { overviewText } from '../../text/overview.ts'

const TimeChart = loaded(() => import('../../components/time-chart.tsx'), null)

type Sample = Schema<'SystemHistory'>['samples'][number]
const key = ['overview', 'history']
const spanSeconds = 3_600
const intervalMs = 10_000

/** Requests and tokens per second of the last hour. After the first answer only new samples are read. */
export function Charts() {
  const query = useQuery({
    queryKey: key,
    queryFn: async () => {
      const known = queryClient.getQueryData<Sample[]>(key) ?? []
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

/** The first line of a chart is in its summary. */
const charts = [
  {
    name: overviewText.requests,
    lines: [
      [overviewText.ended, 'accent', 'requests_per_second'],
      [overviewText.failed, 'bad', 'failures_per_second'],
    ],
  },
  {
    name: overviewText.tokens,
    lines: [
      [overviewText.generated, 'accent', 'output_tokens_per_second'],
      [overviewText.prompt, 'warning', 'input_tokens_per_second'],
    ],
  },
] as const

function ChartPair({ samples }: { samples: readonly Sample[] }) {
  const shown = useMemo(
    () =>
      charts.map(({ name, lines }) => ({
        name,
        series: lines.map(([label, colour, figure]) => ({
          name: label,
          colour,
          values: samples.map(one => one[figure]),
        })),
      })),
    [samples],
  )
  const times = useMemo(() => (samples.length > 0 ? samples.map(({ time }) => time) : [Date.now() / 1_000]), [samples])
  return (
    <div className="grid gap-3 lg:grid-cols-2">
      {shown.map(({ name, series }) => (
        <div key={name} className="border-line bg-surface min-w-0 rounded-lg border p-3">
          <h3 className="mb-1 text-sm font-medium">{name}</h3>
          <div className="min-h-[10.25rem]">
            <TimeChart summary={summaryOf(name, series[0]!.values)} times={times} span={spanSeconds} series={series} />
          </div>
        </div>
      ))}
    </div>
  )
}

const summaryOf = (name: string, values: readonly number[]): string =>
  overviewText.chartSummary(name, decimalText(values.at(-1) ?? 0), decimalText(Math.max(0, ...values)))
