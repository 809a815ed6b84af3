import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import {
  anything,
  integer,
  looseObject,
  namedObject,
  optional,
  optionalStringUpTo,
  string,
} from '../../../core/schemas/fields.ts'
import { type EventStream, openEventStream } from '../../http/answer/sse.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'

/** Milliseconds between two notifications of one request. */
const everyMs = 250

/**
 * The answer to one request: JSON, or a stream of server-sent events once `report` was called and if the client accepts
 * one. A stream is pinged while it is silent, and ends with an error when its token loses its rights.
 */
export function openMcpReply(exchange: ClientExchange, id: RequestId, progressToken: unknown) {
  const streams = /text\/event-stream|\*\/\*/.test(exchange.req.headers.accept ?? '')
  const notifies = typeof progressToken === 'string' || typeof progressToken === 'number'
  let opening: Promise<EventStream> | undefined
  let stream: EventStream | undefined
  let reported = -1
  let reportedAt = -Infinity

  const finish = (text: string) => {
    if (!stream) return exchange.send(200, text)
    stream.send({ event: 'message', data: text })
    stream.end()
  }

  return {
    /** Opens the stream, if the client accepts one: for work that may take long. Rejects with Failure `rate_limit`. */
    async begin(): Promise<void> {
      if (!streams) return
      opening ??= openEventStream(exchange, {
        lastRecord: failure => ({ event: 'message', data: errorText(id, failure) }),
      })
      stream = await opening
      // A stream that was ended here, because its token was revoked or the server stops, waits for no work either.
      void stream.over.then(() => exchange.stop(new Failure('cancelled', 'The stream of the request has ended.')))
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

/** Revisions of the Model Context Protocol that this server speaks, newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

/** The id of a request: a client chooses it. */
export type RequestId = string | number

/** A message of JSON-RPC 2.0. Members of `params` depend on the method and are read there. */
export const McpMessage = looseObject(
  'McpMessage',
  'A request or notification of the Model Context Protocol (JSON-RPC 2.0).',
  {
    jsonrpc: z.literal('2.0').describe('Version of JSON-RPC: always `2.0`.'),
    id: optional(
      z.union([z.string().max(256), z.number()]),
      'Id of the request, by which its answer is recognized. A notification has none.',
    ),
    method: optionalStringUpTo(128, 'Method, such as `tools/call`. An answer to a request of the server has none.'),
    params: optional(z.record(z.string(), z.unknown()), 'Parameters of the method.'),
  },
)
export type McpMessage = z.output<typeof McpMessage>

export const McpAnswer = namedObject('McpAnswer', 'An answer of the Model Context Protocol (JSON-RPC 2.0).', {
  jsonrpc: z.literal('2.0').describe('Version of JSON-RPC: always `2.0`.'),
  id: z.union([z.string(), z.number()]).describe('Id of the request.'),
  result: optional(z.record(z.string(), z.unknown()), 'Result of the method; absent if the request failed.'),
  error: optional(
    z.object({
      code: integer('Error code of JSON-RPC.'),
      message: string('What happened, as a sentence.'),
      data: anything('The same error in the common format, if it has a code of its own.'),
    }),
    'Why the request failed; absent if it did not.',
  ),
})

/** Error codes of JSON-RPC and of the Model Context Protocol. */
export const rpcCodes = { methodNotFound: -32601, invalidParams: -32602, internal: -32603, resourceNotFound: -32002 }

/** A request that is answered with an error of JSON-RPC: the method or the thing that it names does not exist. */
export class RpcError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

const mcpResultText = (id: RequestId, result: object) => JSON.stringify({ jsonrpc: '2.0', id, result })

/** Returns the answer to a request that failed, as JSON text. */
function errorText(id: RequestId, thrown: unknown) {
  const body =
    thrown instanceof RpcError ? { code: thrown.code, message: thrown.message } : failureBody(Failure.from(thrown))
  return JSON.stringify({ jsonrpc: '2.0', id, error: body })
}

function failureBody(failure: Failure) {
  const { code, message, type, param } = failure
  const rpc = failure.status >= 400 && failure.status < 500 ? rpcCodes.invalidParams : rpcCodes.internal
  return { code: rpc, message, data: { code, type, param: param ?? null } }
}
