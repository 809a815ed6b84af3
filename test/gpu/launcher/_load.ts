import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export interface LoadOptions {
  /** Address of the server. It may be restarted, at the same one. */
  url: string
  secret: string
  model: string
  /** Short chats a second, whatever becomes of those before. */
  rate: number
  /** Streams that are open all the time: one that ends is opened again. */
  streams: number
}

/** What became of everything that was sent so far. */
export interface Outcomes {
  sent: number
  answered: number
  /** Answers that are none, by status and code. */
  failed: Record<string, number>
  /** Requests that lost the server itself, or did not reach it. */
  cut: number
  /** Requests that reached a server that was still starting, and were told so. */
  tooEarly: number
  /** How streams ended: with `[DONE]`, with an error event, or without a word. */
  streams: { opened: number; done: number; errorEvent: number; silent: number }
  /** Milliseconds of the slowest answer. */
  slowest: number
}

interface Reply {
  status: number
  text: string
  /** Whether the connection ended before the answer. */
  broken: boolean
}

const submitters = 4
/** Milliseconds without an answer after which the test has failed. */
const patienceMs = 60_000

/** Sends chats, streams and jobs to a server until it is ended. */
export function openLoad({ url, secret, model, rate, streams }: LoadOptions) {
  const agent = new Agent({ keepAlive: true })
  const over = new AbortController()
  const outcomes: Outcomes = {
    sent: 0,
    answered: 0,
    failed: {},
    cut: 0,
    tooEarly: 0,
    streams: { opened: 0, done: 0, errorEvent: 0, silent: 0 },
    slowest: 0,
  }
  /** Ids of acknowledged jobs by their idempotency keys. */
  const acknowledged = new Map<string, string>()
  /** Sending times of the chats that were answered since they were last taken. */
  let answeredSince: number[] = []
  const open = new Set<Promise<void>>()
  /** The streams that have tokens. */
  const flowing = new Set<number>()
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }

  /** Resolves with what came, or with status 0 where the server could not be reached or left. */
  const send = (
    path: string,
    body: object,
    more: Record<string, string> = {},
    { signal, began }: { signal?: AbortSignal; began?: () => void } = {},
  ): Promise<Reply> =>
    new Promise(resolve => {
      const reply: Reply = { status: 0, text: '', broken: true }
      const sent = request(`${url}${path}`, {
        method: 'POST',
        agent,
        headers: { ...headers, ...more },
        ...(signal && { signal }),
      })
      sent.on('response', answer => {
        reply.status = answer.statusCode ?? 0
        answer.setEncoding('utf8').on('data', (piece: string) => {
          reply.text += piece
          if (piece.includes('"content"')) began?.()
        })
        answer.on('end', () => (reply.broken = false))
        answer.on('error', () => {})
        answer.on('close', () => resolve(reply))
      })
      sent.on('error', () => resolve(reply))
      sent.end(JSON.stringify(body))
    })

  const failed = (what: string, { status, text }: Reply) => {
    if (status === 503 && text.includes('The server is starting')) return void outcomes.tooEarly++
    const kind = `${what} ${status} ${/"message":"([^"]+)"/.exec(text)?.[1] ?? text.slice(0, 200)}`
    outcomes.failed[kind] = (outcomes.failed[kind] ?? 0) + 1
  }
  const chat = (content: string, stream = false) => ({ model, stream, messages: [{ role: 'user', content }] })

  async function sendChat(): Promise<void> {
    const sentAt = performance.now()
    outcomes.sent++
    const reply = await send('/std/v1/chat/completions', chat('Hello'))
    if (reply.broken) outcomes.cut++
    else if (reply.status === 200 && reply.text.includes('"choices"')) {
      outcomes.answered++
      answeredSince.push(sentAt)
      outcomes.slowest = Math.max(outcomes.slowest, performance.now() - sentAt)
    } else failed('chat', reply)
  }

  async function keepStream(name: number): Promise<void> {
    while (!over.signal.aborted) {
      const body = chat('mode:stream,tokens=2000,rate=5', true)
      outcomes.streams.opened++
      const began = () => void flowing.add(name)
      const reply = await send('/std/v1/chat/completions', body, {}, { signal: over.signal, began })
      flowing.delete(name)
      if (over.signal.aborted) return
      if (reply.status === 0) outcomes.cut++
      else if (reply.status !== 200) failed('stream', reply)
      else if (reply.text.includes('data: [DONE]') && !reply.text.includes('"error"')) outcomes.streams.done++
      else if (!reply.broken && reply.text.includes('"error"')) outcomes.streams.errorEvent++
      else outcomes.streams.silent++
      await delay(50)
    }
  }

  /** Each job again with the same key until it is acknowledged. */
  async function submit(name: number): Promise<void> {
    for (let at = 0; !over.signal.aborted; at++) {
      const key = `${name}-${at}`
      const inputs = { messages: [{ role: 'user', content: 'mode:slow,ms=20' }] }
      const job = { task: 'std/chat-completion', model_id: model, inputs }
      while (!acknowledged.has(key)) {
        const reply = await send('/api/jobs', job, { 'idempotency-key': key })
        if (reply.status === 202 && !reply.broken) acknowledged.set(key, (JSON.parse(reply.text) as { id: string }).id)
        else if (!reply.broken && reply.status !== 503) failed('job', reply)
        // The server has ended too.
        if (over.signal.aborted && reply.status === 0) return
        await delay(100)
      }
    }
  }

  async function sendChats(): Promise<void> {
    const begun = performance.now()
    for (let count = 0; !over.signal.aborted; ) {
      const due = Math.floor(((performance.now() - begun) / 1_000) * rate)
      for (; count < due; count++) {
        const one = sendChat()
        open.add(one)
        void one.finally(() => open.delete(one))
      }
      await delay(5)
    }
  }

  const begun = performance.now()
  const clients = [
    sendChats(),
    ...Array.from({ length: streams }, (_, name) => keepStream(name)),
    ...Array.from({ length: submitters }, (_, name) => submit(name)),
  ]
  return {
    outcomes,
    acknowledged,
    /** Resolves when a chat has been answered that was sent later than now, and with `flows` when all streams have tokens. */
    async answersAgain(flows = false): Promise<void> {
      const now = performance.now()
      answeredSince = []
      const needed = flows ? streams : 0
      while (!answeredSince.some(sentAt => sentAt > now) || flowing.size < needed) {
        if (performance.now() - now > patienceMs) throw new Error(`No chat is answered: ${JSON.stringify(outcomes)}`)
        await delay(5)
      }
    },
    /** Ends the streams, and resolves with the chats a second when all others have been answered. */
    async end(): Promise<number> {
      const seconds = (performance.now() - begun) / 1_000
      const { sent } = outcomes
      over.abort()
      await Promise.all([...clients, ...open])
      agent.destroy()
      return Math.round(sent / seconds)
    },
  }
}
