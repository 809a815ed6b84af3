import { ApiFailure, api, at, eventsOf, send } from './client.ts'

/** For how long the server goes on with a stream whose connection is lost, seconds. */
const resumeSeconds = 30
/** Milliseconds between two attempts to continue. */
const retryMs = 1_000

/**
 * Sends a request whose answer is a stream, and yields its events; where the connection is lost, it continues after the
 * last one. `begun` gets the id of the job. The work is cancelled when the signal is aborted. Rejects with ApiFailure.
 */
export async function* resumableEvents(
  path: string,
  body: object,
  { signal, begun }: { signal: AbortSignal; begun: (jobId: string | null) => void },
): AsyncGenerator<{ data: string }> {
  let response = await send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: `resume=${resumeSeconds}` },
    body: JSON.stringify(body),
    signal,
  })
  const jobId = response.headers.get('x-job-id')
  begun(jobId)
  const isKept = jobId !== null && response.headers.has('preference-applied')
  const cancel = () => void api.POST('/api/jobs/{id}/cancel', at({ id: jobId! })).catch(() => {})
  if (isKept) signal.addEventListener('abort', cancel)
  try {
    for (let last = ''; ; ) {
      try {
        for await (const event of eventsOf(response)) {
          last = event.id ?? last
          yield event
        }
        return
      } catch (thrown) {
        if (signal.aborted || !isKept) throw thrown
        response = await resumed(jobId, last, signal)
      }
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Connects again, as long as the server keeps the stream. */
async function resumed(jobId: string, last: string, signal: AbortSignal): Promise<Response> {
  for (const until = Date.now() + resumeSeconds * 1_000; ; ) {
    try {
      return await send(`/api/jobs/${jobId}/stream`, { headers: { 'last-event-id': last || '0' }, signal })
    } catch (thrown) {
      const isUnreachable = thrown instanceof ApiFailure && thrown.status === 0
      if (!isUnreachable || Date.now() > until) throw thrown
      await new Promise(resolve => setTimeout(resolve, retryMs))
    }
  }
}
