import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { showBeginning } from './page.tsx'
import { Table } from './table.tsx'
import { useAddress } from './use-address.ts'

/**
 * One page of a list, newest first, and the ways to older rows and back to the newest. Where the page begins is the
 * parameter `after` of the address. `next` is where the following page begins; `children` stand in the place of no rows.
 */
export function PagedTable<Row>({
  next,
  names,
  children,
  ...table
}: Parameters<typeof Table<Row>>[0] & {
  next: string | null
  names: Readonly<Record<'newest' | 'older', string>>
  children: ReactNode
}) {
  return (
    <>
      {table.rows.length > 0 ? <Table {...table} /> : children}
      <PageButtons next={next} names={names} />
    </>
  )
}

/** The ways from one page of a list to the following one, and back to the first. */
export function PageButtons({
  next,
  names,
}: {
  next: string | null
  names: Readonly<Record<'newest' | 'older', string>>
}) {
  const [params, change] = useAddress('push')
  const go = (after: string | undefined) => {
    change({ after })
    showBeginning()
  }
  return (
    <div className="mt-3 flex gap-2 empty:hidden">
      {params.get('after') && <Button onClick={() => go(undefined)} label={names.newest} />}
      {next !== null && <Button onClick={() => go(next)} label={names.older} />}
    </div>
  )
}
