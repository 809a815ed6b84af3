import { ApiFailure, api, at, eventsOf, send } from './client.ts'

/** For how long the server goes on with a stream that nobody reads, and keeps it after its end, seconds. */
const resumeSeconds = { connectionLost: 30, pageLeft: 300 }
/** Milliseconds between two attempts to continue, and how many follow each other at most. */
const retryMs = 1_000
const maxAttempts = 30

/** Why a signal ends a stream and does not cancel its work: no session is left that could. */
export const sessionEnded = new Error('The session has ended.')

type Events = AsyncGenerator<{ data: string }>

interface StreamOptions {
  /** Cancels the work, unless its reason is `sessionEnded`. */
  signal: AbortSignal
  /** What may happen to the stream. */
  until: keyof typeof resumeSeconds
  /** The idempotency key of the request: it is sent again where no answer came, and runs once. */
  key: string
  /** Gets the id of the job, and whether its stream can be taken up by `takenUpEvents`. */
  begun: (jobId: string | null, isKept: boolean) => void
}

/**
 * Sends a request whose answer is a stream, and yields its events; where the connection is lost, it continues after the
 * last one. Of a request that was sent before with the same key it yields the events of the first. Rejects with ApiFailure.
 */
export async function* resumableEvents(path: string, body: object, options: StreamOptions): Events {
  const { signal, begun } = options
  const response = await headOf(path, body, options)
  if (typeof response === 'string') {
    begun(response, true)
    return yield* takenUpEvents(response, signal)
  }
  const jobId = response.headers.get('x-job-id')
  const isKept = jobId !== null && response.headers.has('preference-applied')
  begun(jobId, isKept)
  yield* followed(response, isKept ? jobId : undefined, signal)
}

/** As `answered`; rejects at once when the signal is aborted, and cancels the job whose id is not known yet. */
function headOf(path: string, body: object, options: StreamOptions): Promise<Response | string> {
  const { signal } = options
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const sent = new AbortController()
    const ask = () => answered(path, body, { ...options, signal: sent.signal })
    const first = ask()
    let hasEnded = false
    const stop = () => {
      if (hasEnded) return sent.abort()
      reject(signal.reason as Error)
      if (signal.reason === sessionEnded) sent.abort()
      else void cancelUnnamed([first, ask()], sent)
    }
    signal.addEventListener('abort', stop, { once: true })
    const end = () => {
      hasEnded = true
    }
    void first.then(resolve, reject).finally(end)
  })
}

/**
 * Cancels the job of two equal requests that were sent. An engine may be silent for minutes before the head of its answer,
 * so the id comes from the refusal of one of them: that of the request with the same key that arrives later.
 */
async function cancelUnnamed(requests: readonly Promise<Response | string>[], sent: AbortController): Promise<void> {
  const found = await Promise.any(requests).catch(() => undefined)
  // Before the job ends, after which a request with its key begins another one.
  sent.abort()
  const jobId = found instanceof Response ? found.headers.get('x-job-id') : found
  if (jobId) cancelJob(jobId)
}

const cancelJob = (id: string): void => void api.POST('/api/jobs/{id}/cancel', at({ id })).catch(() => {})

/** The answer to a request, or the id of the job of the first request with its key. */
async function answered(path: string, body: object, { signal, until, key }: StreamOptions): Promise<Response | string> {
  const headers = {
    'content-type': 'application/json',
    prefer: `resume=${resumeSeconds[until]}`,
    'idempotency-key': key,
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(path, { method: 'POST', headers, body: JSON.stringify(body), signal })
    } catch (thrown) {
      if (!(thrown instanceof ApiFailure)) throw thrown
      const { code, param, status, jobId } = thrown
      const isInUse = code === 'idempotency_key_in_use'
      if (jobId !== undefined && (isInUse || (code === 'conflict' && param === 'Idempotency-Key'))) return jobId
      // Its job may not have an id yet.
      if (attempt === maxAttempts || (status !== 0 && !isInUse)) throw thrown
      await pause()
    }
  }
}

/**
 * Yields all events of a stream whose page was left, from its first one on. Rejects with ApiFailure, of status 404 or 410 if
 * the server does not have the stream any more.
 */
export async function* takenUpEvents(jobId: string, signal: AbortSignal): Events {
  yield* followed(await resumed(jobId, '', signal), jobId, signal)
}

/** `jobId`: of a stream that the server keeps. */
async function* followed(begun: Response, jobId: string | undefined, signal: AbortSignal): Events {
  let response = begun
  const cancel = () => {
    if (signal.reason !== sessionEnded) cancelJob(jobId!)
  }
  if (jobId !== undefined) signal.addEventListener('abort', cancel)
  try {
    for (let last = ''; ; ) {
      try {
        for await (const event of eventsOf(response)) {
          last = event.id ?? last
          yield event
        }
        return
      } catch (thrown) {
        if (signal.aborted || jobId === undefined) throw thrown
        response = await resumed(jobId, last, signal)
      }
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Connects again. Attempts are counted, and not their time: a page that was left may be shown again after minutes. */
async function resumed(jobId: string, last: string, signal: AbortSignal): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(`/api/jobs/${jobId}/stream`, { headers: { 'last-event-id': last || '0' }, signal })
    } catch (thrown) {
      const isUnreachable = thrown instanceof ApiFailure && thrown.status === 0
      if (!isUnreachable || attempt === maxAttempts) throw thrown
      await pause()
    }
  }
}

const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, retryMs))
