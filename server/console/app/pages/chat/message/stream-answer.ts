import { api, at, dataOf } from '../../../api/client.ts'
import { resumableEvents, sessionEnded, takenUpEvents } from '../../../api/resumable.ts'
import { emptyAnswer, withChunk } from './chunks.ts'
import type { Figures, Message } from './message.ts'

export interface AnswerOptions {
  /** Gets the answer as it grows, once for each frame of the screen. */
  report: (answer: Message) => void
  /** Stops the answer. */
  signal: AbortSignal
  /** Gets the id of the job of a stream that can be taken up after the page was left. */
  kept?: (jobId: string) => void
}

/** A request for an answer, as it can be sent again. */
export interface AnswerRequest {
  path: string
  body: object
  /** Its idempotency key: sent again, it finds the answer to the first one. */
  key: string
}

/** What is known of an answer whose page was left. */
interface LeftAnswer extends Pick<Figures, 'firstMs'> {
  /** Milliseconds since the request was sent. */
  sinceMs: number
}

/**
 * Sends a request and resolves with the answer when it has ended, or is stopped by the signal. Rejects with ApiFailure if
 * the request is refused. `left`: the request was sent before, by a page that did not get the head of its answer.
 */
export function streamAnswer(
  { path, body, key }: AnswerRequest,
  options: AnswerOptions,
  left?: LeftAnswer,
): Promise<Message> {
  const asked = { ...body, stream: true, stream_options: { include_usage: true } }
  const until = options.kept ? 'pageLeft' : 'connectionLost'
  return collected(
    begun => resumableEvents(path, asked, { signal: options.signal, until, key, begun }),
    options,
    left && answerLeft(left),
  )
}

/** Does the same with the answer of a job, whose page was left while it grew. */
export const takeUpAnswer = (jobId: string, left: LeftAnswer, options: AnswerOptions): Promise<Message> =>
  collected(
    begun => {
      begun(jobId, true)
      return takenUpEvents(jobId, options.signal)
    },
    options,
    answerLeft(left),
  )

const answerLeft = ({ sinceMs, firstMs }: LeftAnswer): Message => ({
  ...emptyAnswer,
  figures: { totalMs: sinceMs, firstMs },
})

/** Puts the events of a stream together. `first`: the answer before its first event. */
async function collected(
  open: (begun: (jobId: string | null, isKept: boolean) => void) => AsyncIterable<{ data: string }>,
  { report, signal, kept }: AnswerOptions,
  first = emptyAnswer,
): Promise<Message> {
  const began = performance.now() - (first.figures?.totalMs ?? 0)
  let answer = first
  let frame = 0
  const show = () => {
    if (frame !== 0) return
    frame = requestAnimationFrame(() => {
      frame = 0
      report(answer)
    })
  }
  let jobId: string | null = null
  const begun = (id: string | null, isKept: boolean) => {
    jobId = id
    if (id !== null && isKept) kept?.(id)
  }
  try {
    for await (const { data } of open(begun)) {
      if (data === '[DONE]') continue
      answer = withChunk(answer, JSON.parse(data) as object, performance.now() - began)
      show()
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown
    answer = { ...answer, stopped: true }
  } finally {
    cancelAnimationFrame(frame)
  }
  const totalMs = performance.now() - began
  const cost = jobId === null || signal.reason === sessionEnded ? undefined : await costOf(jobId)
  return { ...answer, figures: { ...answer.figures, totalMs, cost } }
}

/** The cost as the record of the request says it; undefined if it cannot be read yet. */
async function costOf(id: string): Promise<number | undefined> {
  try {
    const { cost } = await dataOf(api.GET('/api/jobs/{id}', at({ id }, { wait: 2 })))
    return cost ?? undefined
  } catch {
    return undefined
  }
}
