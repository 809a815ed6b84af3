import { Failure } from '../../../core/failure.ts'
import { type EventStream, openEventStream } from '../../http/answer/sse.ts'
import type { Call } from '../../http/request/call.ts'
import { errorText, mcpResultText, type RequestId } from './message.ts'

/** Milliseconds between two notifications of one request. */
const everyMs = 250

/**
 * The answer to one request: JSON, or a stream of server-sent events once `report` was called and if the client accepts
 * one. A stream is pinged while it is silent, and ends with an error when its token loses its rights.
 */
export function openMcpReply(call: Call, id: RequestId, progressToken: unknown) {
  const streams = /text\/event-stream|\*\/\*/.test(call.req.headers.accept ?? '')
  const notifies = typeof progressToken === 'string' || typeof progressToken === 'number'
  let opening: Promise<EventStream> | undefined
  let stream: EventStream | undefined
  let reported = -1
  let reportedAt = -Infinity

  const finish = (text: string) => {
    if (!stream) return call.send(200, text)
    stream.send({ event: 'message', data: text })
    stream.end()
  }

  return {
    /** Opens the stream, if the client accepts one: for work that may take long. Rejects with Failure `rate_limit`. */
    async begin(): Promise<void> {
      if (!streams) return
      opening ??= openEventStream(call, { lastRecord: failure => ({ event: 'message', data: errorText(id, failure) }) })
      stream = await opening
      // A stream that was ended here, because its token was revoked or the server stops, waits for no work either.
      void stream.over.then(() => call.stop(new Failure('cancelled', 'The stream of the request has ended.')))
    },
    /** Notifies the client of progress, 0 to 1, if it asked for that. The protocol requires that values increase. */
    report(progress: number, message?: string): void {
      const now = performance.now()
      if (!notifies || !stream?.keepsUp || progress <= reported || now - reportedAt < everyMs) return
      reported = progress
      reportedAt = now
      const params = { progressToken, progress, total: 1, ...(message ? { message } : {}) }
      stream.send({
        event: 'message',
        data: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }),
      })
    },
    result: (value: object): void => finish(mcpResultText(id, value)),
    error: (thrown: unknown): void => finish(errorText(id, thrown)),
  }
}
export type McpReply = ReturnType<typeof openMcpReply>
