import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Failed } from './failed.tsx'
import { Loading } from './loading.tsx'

/**
 * Shows the data of a query; before it is there, grey lines; if it cannot be read, why. Data that was read before stays
 * while a failure is shown above it.
 */
export function Queried<T>({
  query,
  lines = 3,
  children,
}: {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>
  /** Height of the grey lines. */
  lines?: number
  children: (data: T) => ReactNode
}) {
  const { data, error, refetch } = query
  return (
    <>
      {error && <Failed failure={error} retry={() => void refetch()} />}
      {data !== undefined ? children(data) : error ? null : <Loading lines={lines} />}
    </>
  )
}
