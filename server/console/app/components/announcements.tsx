import { type QueryKey, useMutation } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { refresh } from '../api/client.ts'
import { Notice } from './page.tsx'

/** Milliseconds for which an announcement is shown. */
const shownMs = 5_000

interface Announcement {
  id: number
  kind: 'good' | 'bad'
  sentence: string
}

let shown: readonly Announcement[] = []
let lastId = 0
let redraw = () => {}

function show(next: readonly Announcement[]): void {
  shown = next
  redraw()
}

/** Announces the result of an action: `announce('good', 'The job is cancelled.')`. */
export function announce(kind: Announcement['kind'], sentence: string): void {
  const id = ++lastId
  show([...shown.slice(-2), { id, kind, sentence }])
  setTimeout(() => show(shown.filter(one => one.id !== id)), shownMs)
}

function watch(listener: () => void): () => void {
  redraw = listener
  return () => {
    redraw = () => {}
  }
}

/** Shows short messages at the edge of the window, and has them read aloud. There is one. */
export function Announcements() {
  return (
    <div
      aria-live="polite"
      className="fixed inset-x-4 bottom-4 z-50 mx-auto max-w-md space-y-2 md:right-4 md:left-auto"
    >
      {useSyncExternalStore(watch, () => shown).map(({ id, kind, sentence }) => (
        <Notice key={id} kind={kind} className="border-line border">
          {sentence}
        </Notice>
      ))}
    </div>
  )
}

/**
 * An action, whose failure is announced. `done` returns the sentence that announces its success; afterwards the queries
 * below the keys in `changes` are read again.
 */
export function useAction<Answer, Given = void>(
  act: (given: Given) => Promise<Answer>,
  done: (answer: Answer, given: Given) => string,
  ...changes: QueryKey[]
) {
  return useMutation({
    mutationFn: act,
    onSuccess: (answer, given) => announce('good', done(answer, given)),
    onError: failure => announce('bad', failure.message),
    onSettled: () => Promise.all(changes.map(key => refresh(...key))),
  })
}
