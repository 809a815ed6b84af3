import type { ReactNode } from 'react'
import { useMemo } from 'react'
import { type Column, Table } from '../../components/table.tsx'
import { usageText } from '../../text/usage.ts'
import { amountOf, amountText, measuresIn, type Row, type Sums } from './report.ts'

/** The row of a group, or of all together. */
type Shown = Row & { total?: boolean }

/** The figures of each group, with their sum in the last row. Columns that are 0 everywhere are left out. */
export function UsageTable({
  by,
  rows,
  totals,
  currency,
  name,
}: {
  by: string
  rows: readonly Row[]
  totals: Sums
  currency: string
  name: (key: string) => ReactNode
}) {
  const shown = useMemo<Shown[]>(() => [...rows, { key: '', sums: totals, total: true }], [rows, totals])
  const columns: Column<Shown>[] = [
    { name: by, show: row => (row.total ? <strong>{usageText.total}</strong> : name(row.key)) },
    ...measuresIn(totals).map(measure => ({
      name: usageText.columns[measure],
      number: true,
      show: (row: Shown) => {
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
