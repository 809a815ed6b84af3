import { memo, type ReactNode } from 'react'

/** What stands in a column: a member of the row, or what is drawn for the row. */
type Show<Row> = keyof Row | ((row: Row) => ReactNode)

interface ColumnFacts<Row> {
  /** Numbers stand at the right. */
  number?: boolean
  /** Left out on narrow screens, where a row is a card. */
  wideOnly?: boolean
  /** Left out while a row is open beside the table. */
  aside?: boolean
  show: Show<Row>
}
export interface Column<Row> extends ColumnFacts<Row> {
  name: string
}

/** The columns of a table in their order, by the keys of their names; those that are undefined are left out. */
export const columnsOf = <Row, Key extends string>(
  names: Readonly<Record<Key, unknown>>,
  columns: { [K in Key]?: Show<NoInfer<Row>> | ColumnFacts<NoInfer<Row>> },
): Column<Row>[] =>
  Object.entries<Show<Row> | ColumnFacts<Row> | undefined>(columns).flatMap(([key, column]) =>
    column === undefined
      ? []
      : { name: names[key as Key] as string, ...(typeof column === 'object' ? column : { show: column }) },
  )

/**
 * Rows with columns; on a narrow screen each row is a card with the names of the columns. `rowKey` is the member
 * with the id of a row. A row is drawn again only if its object is another one.
 */
export function Table<Row>({
  label,
  columns,
  rows,
  rowKey,
  openKey,
}: {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey: keyof Row | ((row: Row) => string)
  /** The key of the row that is open beside the table; null for none. Absent where rows are not opened so. */
  openKey?: string | null
}) {
  const keyOf = (row: Row) => (typeof rowKey === 'function' ? rowKey(row) : String(row[rowKey]))
  return (
    <div className="border-line bg-surface overflow-x-auto rounded-lg border">
      <table aria-label={label} className="w-full text-left max-md:block">
        <thead className="text-muted border-line border-b text-xs max-md:sr-only">
          <tr>
            {columns.map(({ name, number }) => (
              <th key={name} scope="col" className={`h-8 px-3 font-medium ${number ? 'text-right' : ''}`}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-line divide-y max-md:block">
          {rows.map(row => (
            <TableRow
              key={keyOf(row)}
              row={row}
              isOpen={openKey === undefined ? undefined : keyOf(row) === openKey}
              columns={columns as readonly Column<unknown>[]}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface TableRowProps {
  row: unknown
  columns: readonly Column<unknown>[]
  isOpen: boolean | undefined
}

const TableRow = memo(function TableRow({ row, columns, isOpen }: TableRowProps) {
  return (
    <tr
      aria-selected={isOpen}
      className={`max-md:block max-md:py-2 ${isOpen ? 'bg-accent-soft' : 'hover:bg-raised/50'}`}
    >
      {columns.map(({ name, number, wideOnly, show }) => (
        <td
          key={name}
          className={`h-9 px-3 py-1 max-md:h-auto max-md:flex max-md:justify-between max-md:gap-4 max-md:py-1 ${number ? 'tabular-nums md:text-right' : ''} ${wideOnly ? 'max-md:hidden' : ''}`}
        >
          <span aria-hidden className="text-muted shrink-0 text-xs md:hidden">
            {name}
          </span>
          <span className="min-w-0 break-words max-md:text-right">
            {typeof show === 'function' ? show(row) : (row as Record<PropertyKey, ReactNode>)[show]}
          </span>
        </td>
      ))}
    </tr>
  )
})
