import { memo } from 'react'
import { amountOf, amountText, bucketText, type Measure, type Row } from './report.ts'

const height = 120

/** Bars of one figure over the buckets of the period. The table has the same in words. */
export const Course = memo(function Course({
  rows,
  measure,
  width,
  currency,
  label,
}: {
  rows: readonly Row[]
  measure: Measure
  width: '1h' | '1d' | 'month'
  currency: string
  label: string
}) {
  const amounts = rows.map(({ sums }) => amountOf(sums, measure))
  const most = Math.max(...amounts, 0)
  return (
    <div className="bg-surface border-line rounded-lg border p-3">
      <div className="text-muted mb-1 text-right text-xs tabular-nums">{amountText(most, measure, currency)}</div>
      <svg
        role="img"
        aria-label={label}
        viewBox={`0 0 ${Math.max(1, rows.length) * 10} ${height}`}
        preserveAspectRatio="none"
        className="text-accent h-30 w-full"
      >
        {rows.map(({ key }, at) => {
          const part = most === 0 ? 0 : Math.max(amounts[at]! > 0 ? 2 : 0, (amounts[at]! / most) * height)
          return (
            <rect key={key} x={at * 10 + 1} y={height - part} width={8} height={part} fill="currentColor">
              <title>{`${bucketText(Number(key), width)}: ${amountText(amounts[at]!, measure, currency)}`}</title>
            </rect>
          )
        })}
      </svg>
      <div className="border-line text-muted flex justify-between border-t pt-1 text-xs">
        {rows.length > 0 && <span>{bucketText(Number(rows[0]!.key), width)}</span>}
        {rows.length > 1 && <span>{bucketText(Number(rows.at(-1)!.key), width)}</span>}
      </div>
    </div>
  )
})
