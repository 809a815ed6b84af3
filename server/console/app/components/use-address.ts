import { useSearchParams } from 'wouter'

/**
 * The parameters in the address of the page, and the function that changes some of them; an empty value removes one.
 * Filters and searches are there, so that every list can be linked to. With `push` the way back leads to those before.
 */
export function useAddress(
  mode: 'replace' | 'push' = 'replace',
): [params: URLSearchParams, change: (changes: Readonly<Record<string, string | null | undefined>>) => void] {
  const [params, setParams] = useSearchParams()
  const change = (changes: Readonly<Record<string, string | null | undefined>>) =>
    setParams(
      now => {
        const next = new URLSearchParams(now)
        for (const [name, value] of Object.entries(changes))
          if (value) next.set(name, value)
          else next.delete(name)
        return next
      },
      { replace: mode === 'replace' },
    )
  return [params, change]
}

/** The words that a person searches for, and the function that changes them. */
export function useSearch(): [search: string, change: (search: string) => void] {
  const [params, change] = useAddress()
  return [params.get('q') ?? '', q => change({ q })]
}
