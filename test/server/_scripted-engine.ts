import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type Asked,
  chatFrames,
  chatOf,
  embeddingsOf,
  rerankOf,
  scoreOf,
  wholeChat,
} from '../fixtures/engine-answers.ts'

/** One request as the engine received it. */
export interface Seen {
  path: string
  headers: IncomingMessage['headers']
  body: Asked & Record<string, unknown>
  at: number
  /** When the server aborted the request, on the clock of `performance`; undefined while it has not. */
  goneAt: number | undefined
}

/**
 * An engine in this process whose every answer is decided by the test. To the server it is a remote one: `model` is its
 * entry for infer.yaml. A reply that returns without answering leaves the request open.
 */
export async function openScriptedEngine(reply: (seen: Seen, response: ServerResponse, times: number) => void) {
  const seen: Seen[] = []
  const waiting = new Set<() => void>()
  const changed = () => {
    for (const look of waiting) look()
  }
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.once('end', () => {
      const one: Seen = {
        path: request.url ?? '',
        headers: request.headers,
        body: JSON.parse(Buffer.concat(parts).toString('utf8')) as Seen['body'],
        at: performance.now(),
        goneAt: undefined,
      }
      seen.push(one)
      response.once('close', () => {
        if (!response.writableFinished) one.goneAt = performance.now()
        changed()
      })
      reply(one, response, seen.length)
      changed()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    seen,
    model: (id: string, more: object = {}) => ({
      id,
      engine: 'remote',
      url: `http://127.0.0.1:${port}/v1`,
      tasks: ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/score'],
      ...more,
    }),
    /** Resolves once the condition holds; it is evaluated again after every request that starts or ends. */
    until(holds: (seen: Seen[]) => boolean): Promise<void> {
      return new Promise(resolve => {
        const look = () => {
          if (!holds(seen)) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(done => server.close(done))
    },
  }
}
export type ScriptedEngine = Awaited<ReturnType<typeof openScriptedEngine>>

const json = (response: ServerResponse, status: number, value: object) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

/** The answer of an ordinary engine. */
export function well({ path, body }: Seen, response: ServerResponse): void {
  const name = 'scripted'
  if (path.endsWith('/embeddings')) return json(response, 200, embeddingsOf(body, name))
  if (path.endsWith('/rerank')) return json(response, 200, rerankOf(body, name))
  if (path.endsWith('/score')) return json(response, 200, scoreOf(body, name))
  const chat = chatOf(body, name, undefined)
  if (!body.stream) return json(response, 200, wholeChat(chat))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const frame of chatFrames(chat, true)) response.write(`data: ${JSON.stringify(frame)}\n\n`)
  response.end('data: [DONE]\n\n')
}

export const badly = (response: ServerResponse, status: number, message: string): void =>
  json(response, status, { error: { message, type: 'scripted_error' } })
