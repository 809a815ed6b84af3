import { api, at, dataOf } from '../../../api/client.ts'
import { resumableEvents } from '../../../api/resumable.ts'
import { emptyAnswer, withChunk } from './chunks.ts'
import type { Message } from './message.ts'

/**
 * Sends a request to a path and resolves with the answer when it has ended, or is stopped by the signal; `report` gets the answer
 * as it grows, once for each frame of the screen. Rejects with ApiFailure if the request is refused.
 */
export async function streamAnswer(
  path: string,
  body: object,
  report: (answer: Message) => void,
  signal: AbortSignal,
): Promise<Message> {
  const began = performance.now()
  let answer = emptyAnswer
  let frame = 0
  const show = () => {
    if (frame !== 0) return
    frame = requestAnimationFrame(() => {
      frame = 0
      report(answer)
    })
  }
  let jobId: string | null = null
  try {
    const asked = { ...body, stream: true, stream_options: { include_usage: true } }
    const begun = (id: string | null) => void (jobId = id)
    for await (const { data } of resumableEvents(path, asked, { signal, begun })) {
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
  const cost = jobId === null ? undefined : await costOf(jobId)
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
