import type { limitState } from './limit-use.ts'

/** The colours of the parts, in their order. */
export const meterColours = ['bg-accent', 'bg-control', 'bg-model-1'] as const

/** How far a node is, at the end of its card; from 0 to 1. */
export const Progress = ({ value, className = '' }: { value: number; className?: string }) => (
  <div className={`bg-raised h-1 overflow-hidden rounded-b-lg ${className}`}>
    <div className="bg-accent h-full" style={{ width: `${Math.round(value * 100)}%` }} />
  </div>
)

interface MeterProps {
  label: string
  /** The reading in words: `12 of 24 GiB`. */
  value: string
  parts: readonly { name: string; amount: number }[]
  whole: number
  /** Of a limit: how it stands, which the value says in words. */
  state?: ReturnType<typeof limitState>
}

const stateColours = { free: undefined, near: 'bg-warning', reached: 'bg-bad' } as const

interface BarProps extends Pick<MeterProps, 'parts' | 'whole' | 'state'> {
  /** What the bar says, for screen readers. */
  label: string
}

/** A bar of parts. */
export const Bar = ({ label, parts, whole, state = 'free' }: BarProps) => (
  <div role="img" aria-label={label} className="bg-raised flex h-2 overflow-hidden rounded-full">
    {parts.map(({ name, amount }, at) => (
      <div
        key={name}
        title={name}
        className={at === 0 ? (stateColours[state] ?? meterColours[0]) : meterColours[at]}
        style={{ width: `${whole > 0 ? Math.min(100, (100 * amount) / whole) : 0}%` }}
      />
    ))}
  </div>
)

/** How much of something is taken: a bar of parts, with the same in words. */
export const Meter = ({ label, value, ...bar }: MeterProps) => (
  <div>
    <div className="mb-1 flex justify-between gap-2 text-xs">
      <span>{label}</span>
      <span className="text-muted tabular-nums">{value}</span>
    </div>
    <Bar {...bar} label={`${label}: ${value}`} />
  </div>
)
