import { useEffect } from 'react'
import { useLocation, useSearch } from 'wouter'
import { onPersonEnd } from '../api/person-end.ts'

/** The query that the list of a page had last, by its path. */
const queries = new Map<string, string>()
onPersonEnd(() => queries.clear())

/** Notes the filters and the place of the list that is shown at this path. It draws nothing, so that no page is drawn again with it. */
export function NotedList({ path }: { path: string }): null {
  const [location] = useLocation()
  const query = useSearch()
  useEffect(() => {
    if (location === path) queries.set(path, query)
  }, [location, path, query])
  return null
}

/** The address of a list as the person has left it: with its filters, at its place. */
export function asLeft(path: string): string {
  const query = queries.get(path)
  return query ? `${path}?${query}` : path
}
