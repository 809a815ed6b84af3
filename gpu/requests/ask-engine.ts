import type { Endpoint } from '../launcher/launcher.ts'
import { EngineConnection, type ExchangeListener } from './engine-connection.ts'
import { ConnectionError, type HttpRequest, headerLines } from './http-request.ts'

export interface EngineQuestion {
  path: string
  /** Names and values alternating. */
  headers: readonly string[]
  /** Sent as JSON by POST. Absent: GET. */
  body?: object | undefined
  method?: 'POST' | undefined
  /** How long connection and answer may take together, milliseconds. */
  timeoutMs: number
  /** Bytes of the answer. */
  maxBytes?: number
}

/** The answer has more bytes than it may have. */
export class AnswerTooLong extends Error {}

/**
 * Asks an engine what is not about its work, on a connection of its own. Resolves with whatever it answers. Rejects if it does not
 * answer in time, or with too much.
 */
export async function askEngine(
  endpoint: Endpoint,
  { path, headers, body, method, timeoutMs, maxBytes = Number.POSITIVE_INFINITY }: EngineQuestion,
): Promise<{ status: number; text: string }> {
  const isNamed = body === undefined || headers.includes('content-type')
  const request: HttpRequest = {
    method: method ?? (body ? 'POST' : 'GET'),
    path,
    headers: headerLines(isNamed ? headers : ['content-type', 'application/json', ...headers]),
    body: body ? JSON.stringify(body) : null,
    timeoutMs,
  }
  const connection = new EngineConnection({ endpoint, connectMs: timeoutMs, keepAliveMs: timeoutMs })
  const tooLate = () =>
    connection.destroy(new ConnectionError('TIMEOUT', `The engine did not answer within ${timeoutMs} ms.`))
  const timer = setTimeout(tooLate, timeoutMs)
  try {
    return await answerOf(connection, request, maxBytes)
  } finally {
    clearTimeout(timer)
    connection.destroy()
  }
}

const answerOf = (
  connection: EngineConnection,
  request: HttpRequest,
  maxBytes: number,
): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    let status = 0
    let bytes = 0
    const parts: Buffer[] = []
    const listener: ExchangeListener = {
      head: given => void (status = given),
      data(part) {
        parts.push(part)
        bytes += part.length
        if (bytes <= maxBytes) return
        connection.abort(listener)
        reject(new AnswerTooLong(`The engine answered with more than ${maxBytes} bytes.`))
      },
      ended: () => resolve({ status, text: Buffer.concat(parts).toString('utf8') }),
      failed: reject,
    }
    connection.send(request, listener)
  })
