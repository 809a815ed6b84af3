import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useCallback, useContext, useState } from 'react'
import { Notice } from './page.tsx'

/** Milliseconds for which an announcement is shown. */
const shownMs = 5_000

interface Announcement {
  id: number
  kind: 'good' | 'bad'
  sentence: string
}

const Context = createContext<(kind: Announcement['kind'], sentence: string) => void>(() => {})

/** Shows short messages at the edge of the window, and has them read aloud. */
export function Announcements({ children }: { children: ReactNode }) {
  const [all, setAll] = useState<readonly Announcement[]>([])
  const announce = useCallback((kind: Announcement['kind'], sentence: string) => {
    const id = Date.now() + Math.random()
    setAll(now => [...now.slice(-2), { id, kind, sentence }])
    setTimeout(() => setAll(now => now.filter(one => one.id !== id)), shownMs)
  }, [])
  return (
    <Context value={announce}>
      {children}
      <div
        aria-live="polite"
        className="fixed inset-x-4 bottom-4 z-50 mx-auto max-w-md space-y-2 md:right-4 md:left-auto"
      >
        {all.map(({ id, kind, sentence }) => (
          <Notice key={id} kind={kind} className="border-line border">
            {sentence}
          </Notice>
        ))}
      </div>
    </Context>
  )
}

/** The function that announces the result of an action: `announce('good', 'The job is cancelled.')`. */
export const useAnnounce = () => useContext(Context)

/**
 * An action, whose failure is announced. `done` returns the sentence that announces its success; afterwards the queries
 * below the keys in `changes` are read again.
 */
export function useAction<Answer, Given = void>(
  act: (given: Given) => Promise<Answer>,
  done: (answer: Answer, given: Given) => string,
  ...changes: QueryKey[]
) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  return useMutation({
    mutationFn: act,
    onSuccess: (answer, given) => announce('good', done(answer, given)),
    onError: failure => announce('bad', failure.message),
    onSettled: () => Promise.all(changes.map(queryKey => queries.invalidateQueries({ queryKey }))),
  })
}
