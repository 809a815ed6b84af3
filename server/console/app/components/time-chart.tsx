import { useEffect, useRef, useState } from 'react'
import UPlot from 'uplot'
import { decimalText } from './format.ts'

interface TimeSeries {
  name: string
  values: readonly number[]
  colour: 'accent' | 'warning' | 'bad' | 'muted'
}

const height = 140

interface TimeChartProps {
  summary: string
  /** Unix seconds. */
  times: readonly number[]
  /** Seconds that the chart shows, up to the last time. */
  span: number
  series: readonly TimeSeries[]
}

/**
 * Lines over time, with the value under the pointer. `summary` says the same in a sentence. Loaded when it is shown, as
 * its library is large.
 */
export default function TimeChart({ summary, times, span, series }: TimeChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  const [at, setAt] = useState<number | null>(null)
  const drawn = series.map(({ name, colour }) => `${name} ${colour}`).join()

  useEffect(() => {
    const parent = place.current!
    const colourOf = (name: string) => getComputedStyle(parent.querySelector(`[data-colour=${name}]`)!).color
    const axis = {
      stroke: () => colourOf('muted'),
      grid: { stroke: () => colourOf('line'), width: 1 },
      font: '11px sans-serif',
    }
    const made = new UPlot(
      {
        width: parent.clientWidth,
        height,
        legend: { show: false },
        padding: [8, 8, 0, 0],
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
          x: { range: (_, __, to) => [to - span, to] },
          y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
        },
        axes: [
          { ...axis, space: 60, size: 28, values: (_, splits) => splits.map(clockText) },
          { ...axis, size: 44, values: (_, splits) => splits.map(split => decimalText(split)) },
        ],
        series: [
          {},
          ...series.map(({ colour }) => ({
            stroke: () => colourOf(colour),
            width: 1.5,
            points: { show: hasFewPoints },
          })),
        ],
        hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? null)] },
      },
      [[], ...series.map(() => [])],
      parent,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height }))
    resized.observe(parent)
    // The colours are those of the theme at the time of drawing.
    const themed = new MutationObserver(() => made.redraw(false))
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    const system = matchMedia('(prefers-color-scheme: dark)')
    const redraw = () => made.redraw(false)
    system.addEventListener('change', redraw)
    return () => {
      resized.disconnect()
      themed.disconnect()
      system.removeEventListener('change', redraw)
      made.destroy()
      plot.current = undefined
    }
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [drawn, span])

  useEffect(() => {
    plot.current?.setData([[...times], ...series.map(({ values }) => [...values])])
  }, [times, series])

  const shown = at ?? times.length - 1
  return (
    <div>
      <p aria-hidden className="mb-1 flex flex-wrap gap-x-4 text-xs">
        {series.map(({ name, values, colour }) => (
          <span key={name} className="inline-flex items-center gap-1.5">
            <span className={`inline-block h-0.5 w-4 ${fills[colour]}`} />
            {name} <span className="text-muted tabular-nums">{decimalText(values[shown] ?? 0)}</span>
          </span>
        ))}
        {at !== null && times[at] !== undefined && (
          <span className="text-muted tabular-nums">{clockText(times[at])}</span>
        )}
      </p>
      <div ref={place} role="img" aria-label={summary} style={{ height }}>
        {colours.map(([name, look]) => (
          <span key={name} data-colour={name} className={`hidden ${look}`} />
        ))}
      </div>
    </div>
  )
}

/** A line needs two points, and is hardly seen with a few. */
const hasFewPoints = ({ data: [times] }: UPlot): boolean => times.length <= 6

const fills = { accent: 'bg-accent', warning: 'bg-warning', bad: 'bg-bad', muted: 'bg-muted' }
/** Elements whose computed colours the canvas is drawn with. */
const colours = [
  ['accent', 'text-accent'],
  ['warning', 'text-warning'],
  ['bad', 'text-bad'],
  ['muted', 'text-muted'],
  ['line', 'text-line'],
] as const

const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const clockText = (unixSeconds: number): string => clock.format(unixSeconds * 1_000)
