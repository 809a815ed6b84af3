/** A job to create. The key makes a repeated request find the same job. */
export interface Submission {
  /** `<run>.<place in the run>` */
  key: string
  task: string
  model: string
  inputs: Readonly<Record<string, unknown>>
}

/** A submission that has no answer yet. */
export interface Unanswered extends Submission {
  /** Why no answer came; empty while the request is on its way. */
  message: string
}

/** Where submissions are kept; `read` returns null where nothing is. */
export interface OutboxStore {
  read(): string | null
  /** An empty list removes what is kept. Throws if there is no room. */
  write(submissions: readonly Submission[]): void
}

interface OutboxOptions {
  store: OutboxStore
  /** Creates the job. Rejects with a failure whose `status` is 0 if no answer came. */
  post: (submission: Submission) => Promise<unknown>
}

export type Outbox = ReturnType<typeof openOutbox>

/**
 * Sends submissions, and keeps each until it is answered: a page that is left before does not forget a job. What was kept
 * is sent again with the same key, and finds the job if the first request has arrived.
 */
export function openOutbox({ store, post }: OutboxOptions) {
  const watchers = new Set<() => void>()
  let entries: readonly Unanswered[] = keptIn(store)
  /** Whether the store has the entries. */
  let isKept = true

  function become(next: readonly Unanswered[]): void {
    entries = next
    try {
      store.write(entries.map(({ key, task, model, inputs }) => ({ key, task, model, inputs })))
      isKept = true
    } catch {
      isKept = false
      // Without room nothing outlives the page, but everything is sent.
    }
    for (const watcher of watchers) watcher()
  }

  async function deliver(submission: Submission): Promise<Error | undefined> {
    const { key } = submission
    let failure: (Error & { status?: number }) | undefined
    try {
      await post(submission)
    } catch (thrown) {
      failure = thrown as Error
    }
    // Signing out has removed what was kept; nothing of it may come back.
    const left = isKept && store.read() === null ? [] : entries
    const isUnanswered = failure?.status === 0
    const message = failure?.message ?? ''
    become(
      isUnanswered
        ? left.map(one => (one.key === key ? { ...one, message } : one))
        : left.filter(one => one.key !== key),
    )
    return isUnanswered ? undefined : failure
  }

  /** Sends submissions. Resolves when each is answered or has failed, with the failures that the server answered. */
  async function send(submissions: readonly Submission[]): Promise<Error[]> {
    const keys = new Set(submissions.map(({ key }) => key))
    become([...entries.filter(({ key }) => !keys.has(key)), ...submissions.map(one => ({ ...one, message: '' }))])
    const outcomes = await Promise.all(submissions.map(deliver))
    return outcomes.filter(failure => failure !== undefined)
  }

  return {
    get entries(): readonly Unanswered[] {
      return entries
    },
    send,
    /** Sends again what was kept. */
    resume: (): Promise<Error[]> => send(entries),
    /** Forgets a submission. A job that it has created stays. */
    discard: (key: string): void => become(entries.filter(one => one.key !== key)),
    watch: (watcher: () => void) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
  }
}

function keptIn(store: OutboxStore): Unanswered[] {
  try {
    const kept = JSON.parse(store.read() ?? '[]') as Submission[]
    return kept.map(one => ({ ...one, message: '' }))
  } catch {
    return []
  }
}
