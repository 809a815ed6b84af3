import { useSearchParams } from 'wouter'

/** The words that a person searches for. They are in the address, so that the list can be linked to. */
export function useSearch(): [search: string, change: (search: string) => void] {
  const [params, setParams] = useSearchParams()
  return [params.get('q') ?? '', q => setParams(q === '' ? {} : { q }, { replace: true })]
}
