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
}

/** How much of something is taken: a bar of parts, with the same in words. */
export const Meter = ({ label, value, parts, whole }: MeterProps) => (
  <div>
    <div className="mb-1 flex justify-between gap-2 text-xs">
      <span>{label}</span>
      <span className="text-muted tabular-nums">{value}</span>
    </div>
    <div role="img" aria-label={`${label}: ${value}`} className="bg-raised flex h-2 overflow-hidden rounded-full">
      {parts.map(({ name, amount }, at) => (
        <div
          key={name}
          title={name}
          className={meterColours[at]}
          style={{ width: `${whole > 0 ? Math.min(100, (100 * amount) / whole) : 0}%` }}
        />
      ))}
    </div>
  </div>
)
