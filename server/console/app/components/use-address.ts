import { useSearchParams } from 'wouter'

type Changes = Readonly<Record<string, string | null | undefined>>

/** Parameters with some changed; an empty value removes one. */
function changed(params: URLSearchParams, changes: Changes): URLSearchParams {
  const next = new URLSearchParams(params)
  for (const [name, value] of Object.entries(changes))
    if (value) next.set(name, value)
    else next.delete(name)
  return next
}

/** The address of a page with these parameters, some of them changed. */
export function addressWith(path: string, params: URLSearchParams, changes: Changes): string {
  const query = changed(params, changes).toString()
  return query === '' ? path : `${path}?${query}`
}

/**
 * The parameters in the address of the page, and the function that changes some of them; an empty value removes one.
 * Filters and searches are there, so that every list can be linked to. With `push` the way back leads to those before.
 */
export function useAddress(
  mode: 'replace' | 'push' = 'replace',
): [params: URLSearchParams, change: (changes: Changes) => void] {
  const [params, setParams] = useSearchParams()
  const change = (changes: Changes) => setParams(now => changed(now, changes), { replace: mode === 'replace' })
  return [params, change]
}

/** The words that a person searches for, and the function that changes them. */
export function useSearch(): [search: string, change: (search: string) => void] {
  const [params, change] = useAddress()
  return [params.get('q') ?? '', q => change({ q })]
}
