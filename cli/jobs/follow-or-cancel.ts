import type { Interrupts } from '../terminal/interruption.ts'
import type { FollowOptions } from './follow-to-end.ts'

/** Returns the message about a connection that was lost, with its reason, or that works again. */
export const connectionText = (id: string, trouble: string | undefined): string =>
  trouble === undefined ? 'Connected again.' : `Reconnecting to ${id}. ${trouble}`

/** A job or an execution that runs on the server. */
interface Work<T> {
  id: string
  follow: (following: Pick<FollowOptions<never>, 'signal' | 'onTrouble'>) => Promise<T>
  /** Resolves with the record; with undefined if the work has ended already. */
  cancel: (signal: AbortSignal) => Promise<T | undefined>
}

/** Follows work to its end. The first Ctrl-C cancels it; the server's response to the cancellation is the end. */
export async function followOrCancel<T>(
  { id, follow, cancel: cancelWork }: Work<T>,
  say: (text: string) => void,
  { cancel, leave }: Interrupts,
): Promise<T> {
  const ended = new AbortController()
  const interrupted = new Promise<void>(resolve => {
    if (cancel.aborted) resolve()
    else cancel.addEventListener('abort', () => resolve(), { once: true })
  })
  const never = () => new Promise<never>(() => undefined)
  const cancelled = interrupted.then(async () => {
    if (ended.signal.aborted) return never()
    say(`Cancelling ${id}. Press Ctrl-C again to leave it running.`)
    // The work had ended already: `followed` resolves with its end.
    return (await cancelWork(leave)) ?? never()
  })
  const followed = follow({
    signal: AbortSignal.any([leave, ended.signal]),
    onTrouble: trouble => say(connectionText(id, trouble)),
  })
  followed.catch(() => undefined)
  try {
    return await Promise.race([followed, cancelled])
  } finally {
    ended.abort()
  }
}
