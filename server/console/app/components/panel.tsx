import { X } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { Link, useLocation } from 'wouter'
import { IconButton } from './button.tsx'
import { PagedTable } from './paged-table.tsx'
import { useRowKeys } from './row-keys.ts'
import { addressWith, useAddress } from './use-address.ts'

/** A list and, where one of its rows is open, what stands beside it; on a narrow screen in its place. */
export function WithPanel({ panel, children }: { panel: ReactNode; children: ReactNode }) {
  const isOpen = Boolean(panel)
  return (
    <div className={isOpen ? 'grid gap-4 lg:grid-cols-[minmax(0,1fr)_minmax(22rem,28rem)]' : ''}>
      <div className={isOpen ? 'min-w-0 max-lg:hidden' : ''}>{children}</div>
      {panel}
    </div>
  )
}

interface SidePanelProps {
  /** What is shown, for screen readers. */
  label: string
  title: ReactNode
  /** Below the title: the state of what is shown, and what it belongs to. */
  about?: ReactNode
  /** Beside the button that closes it. */
  actions?: ReactNode
  closeLabel: string
  close: () => void
  children: ReactNode
}

/** One row of a list with all that is known of it. */
export function SidePanel({ label, title, about, actions, closeLabel, close, children }: SidePanelProps) {
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    // Where the panel takes the place of the list, the row that had the focus is gone.
    if (!panel.current?.contains(document.activeElement) && matchMedia('(width < 64rem)').matches)
      panel.current?.focus()
  }, [])
  return (
    <section
      ref={panel}
      tabIndex={-1}
      aria-label={label}
      className="border-line bg-surface min-w-0 rounded-lg border p-4 lg:sticky lg:top-0 lg:max-h-[calc(100dvh-3rem)] lg:overflow-y-auto"
    >
      <div className="mb-3 flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="line-clamp-2 font-semibold break-words">{title}</h2>
          {about && <p className="text-muted flex flex-wrap items-center gap-2">{about}</p>}
        </div>
        {actions}
        <IconButton icon={X} label={closeLabel} onClick={close} />
      </div>
      {children}
    </section>
  )
}

/**
 * One page of a list of which one row may be open beside it: `param` is the parameter of the address with its id. The arrow
 * keys go from row to row. Columns that are `aside` are left out while a row is open.
 */
export function PanelTable<Row extends { id: string }>({
  param,
  columns,
  rows,
  ...table
}: Omit<Parameters<typeof PagedTable<Row>>[0], 'rowKey' | 'openKey'> & { param: string }) {
  const [params, change] = useAddress()
  const list = useRef<HTMLDivElement>(null)
  const open = params.get(param) ?? undefined
  useRowKeys(
    list,
    rows.map(({ id }) => id),
    open,
    id => change({ [param]: id }),
  )
  return (
    <div ref={list}>
      <PagedTable
        {...table}
        columns={open === undefined ? columns : columns.filter(({ aside }) => !aside)}
        rows={rows}
        rowKey="id"
        openKey={open ?? null}
      />
    </div>
  )
}

/** Opens a row beside its list. */
export function RowLink({ param, id, children }: { param: string; id: string; children: ReactNode }) {
  const [path] = useLocation()
  const [params] = useAddress()
  return (
    <Link
      href={addressWith(path, params, { [param]: id })}
      data-row={id}
      className="font-medium break-words hover:underline"
    >
      {children}
    </Link>
  )
}
