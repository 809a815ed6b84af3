import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Seen {
  method: string
  path: string
  authorization: string | undefined
  /** The idempotency key. */
  key?: string
  body: unknown
}

export type Handler = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void

/** A small fake of an infer server: records requests and answers with what the test gives it. */
export async function fakeServer(handle: Handler): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', piece => pieces.push(piece as Buffer))
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString()
      const one: Seen = {
        method: request.method ?? '',
        path: request.url ?? '',
        authorization: request.headers.authorization,
        body: text === '' ? undefined : JSON.parse(text),
      }
      const key = request.headers['idempotency-key']
      if (typeof key === 'string') one.key = key
      seen.push(one)
      handle(one, response, request)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>(resolve => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

/** The same server without any named model, so requests are for text. The model look-up is not recorded. */
export async function chatServer(handle: Handler): Promise<{ url: string; seen: Seen[] }> {
  const server = await fakeServer((one, response, request) => {
    if (one.path !== '/api/model-status') return handle(one, response, request)
    server.seen.splice(server.seen.indexOf(one), 1)
    answer(response, 200, { models: [] })
  })
  return server
}

export function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  const id = status < 400 ? { 'x-request-id': 'req_fake' } : {}
  response.writeHead(status, { 'content-type': 'application/json', ...id, ...headers }).end(JSON.stringify(body))
}

export const models = {
  object: 'list',
  data: [
    { id: 'tiny-embed', object: 'model', tasks: ['std/embeddings'] },
    { id: 'tiny-chat', object: 'model', tasks: ['std/chat-completion'] },
    { id: 'other-chat', object: 'model', tasks: ['std/chat-completion'] },
  ],
}

/** One chunk of a streamed chat answer. */
export const chunk = (delta: object, finish: string | null = null, usage?: object): string =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: usage ? [] : [{ index: 0, delta, finish_reason: finish }], ...(usage ? { usage } : {}) })}\n\n`

/** Streams the words as an answer, with usage and the end mark. */
export function streamWords(response: ServerResponse, words: readonly string[]) {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(chunk({ role: 'assistant', content: '' }))
  for (const word of words) response.write(chunk({ content: word }))
  response.write(chunk({}, 'stop'))
  response.write(chunk({}, null, { prompt_tokens: 3, completion_tokens: words.length, total_tokens: 3 + words.length }))
  response.end('data: [DONE]\n\n')
}
