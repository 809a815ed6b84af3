import { useState } from 'react'
import { useSession } from '../../api/client.ts'
import { useKeeping } from '../../components/use-keeping.ts'

/** What the address begins with: the job or the file that is opened in the playground; empty for neither. */
export type Origin = string

/**
 * State of a task that this tab keeps: another task, another page and a reload leave it. `initial` counts where nothing is
 * kept, and where the address names another job or file than the one that the kept state began with. `adopt` may change
 * what it begins with. Signing out removes it (`infer.person.`).
 */
export function useKept<T>(
  task: string,
  name: string,
  origin: Origin,
  initial: () => T,
  adopt = (begun: T): T => begun,
) {
  const { session } = useSession()
  const key = `infer.person.playground.${session.token.id}.${task}.${name}`
  const [state, setState] = useState<T>(() => {
    const kept = readKept(key)
    return adopt(kept && (origin === '' || origin === kept.origin) ? (kept.value as T) : initial())
  })
  useKeeping(state, value => {
    try {
      sessionStorage.setItem(key, JSON.stringify({ origin, value }))
    } catch {
      // The browser has no room: the state lasts as long as the page.
    }
  })
  return [state, setState] as const
}

function readKept(key: string): { origin: Origin; value: unknown } | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(key) ?? 'null') as { origin: Origin; value: unknown } | null) ?? undefined
  } catch {
    return undefined
  }
}
