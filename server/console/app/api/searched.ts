import { keepPreviousData, type QueryKey, useQuery } from '@tanstack/react-query'
import { useDeferredValue, useState } from 'react'
import { dataOf } from './client.ts'

/** Entries of a list that are found by what a person types: 100 at most, and whether the server has others. */
export interface Searched<Page> {
  /** Undefined until it is read. */
  page: Page | undefined
  isCut: boolean
  /** Takes what is typed. */
  typed: (words: string) => void
}

/** Searches a list on the server, for a choice from it. `call` reads the first page of what has the words. */
export function useSearched<Page extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  call: (page: { limit: number; q: string | undefined }) => Promise<{ data?: Page }>,
  enabled = true,
): Searched<Page> {
  const [words, typed] = useState('')
  const q = useDeferredValue(words.trim()) || undefined
  const { data: page } = useQuery({
    queryKey: [...queryKey, q],
    queryFn: () => dataOf(call({ limit: 100, q })),
    staleTime: 60_000,
    placeholderData: keepPreviousData,
    enabled,
  })
  return { page, isCut: page !== undefined && page.next_cursor !== null, typed }
}
