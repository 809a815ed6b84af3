import { setTimeout as delay } from 'node:timers/promises'
import type { Actor, Box, Call } from './box.ts'

/** An answer of the server, whole. */
export interface Answer {
  status: number
  text: string
  /** The events of a stream; empty for others. */
  events: string[]
}

/** How long a client waits before it repeats a request that was not answered. */
const retryMs = 300

export type Client = ReturnType<typeof openClient>

/** Sends the requests of one actor and records them. A request that was not served is sent again. */
export function openClient(box: Box, { name, organization }: Actor) {
  const { secret } = box.organizations[organization]

  const send = (path: string, body?: object | FormData, headers: Record<string, string> = {}): Promise<Response> => {
    const isForm = body instanceof FormData
    return fetch(box.server.url + path, {
      ...(body === undefined ? {} : { method: 'POST', body: isForm ? body : JSON.stringify(body) }),
      headers: {
        authorization: `Bearer ${secret}`,
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    })
  }

  /** A request that has just begun. */
  const callOf = (model: string): Call => ({
    actor: name,
    model,
    at: box.now(),
    began: null,
    ended: box.now(),
    outcome: 'broken',
    detail: '',
    jobId: null,
  })

  async function once(path: string, body: { model: string; stream?: boolean }): Promise<[Call, Answer | undefined]> {
    const call = callOf(body.model)
    box.open.add(call)
    let answer: Answer | undefined
    try {
      const response = await send(path, body)
      call.jobId = response.headers.get('x-job-id')
      let text = ''
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        text += piece
        if (!body.stream || /^data: /m.test(text)) call.began ??= box.now()
      }
      const events = body.stream ? text.split('\n').flatMap(line => /^data: (.+)$/.exec(line)?.[1] ?? []) : []
      answer = { status: response.status, text, events }
      const failed = response.ok ? errorIn(events) : `${response.status} ${codeOf(text)}`
      if (response.ok && failed === undefined && (!body.stream || events.at(-1) === '[DONE]')) call.outcome = 'served'
      else if (!response.ok) call.outcome = 'refused'
      call.detail = failed ?? (call.outcome === 'served' ? '' : 'the stream ended early')
    } catch (cause) {
      call.detail = connectionErrorOf(cause)
    }
    call.ended = box.now()
    box.open.delete(call)
    box.calls.push(call)
    return [call, call.outcome === 'served' ? answer : undefined]
  }

  return {
    /** Sends a request until it is served; every try is recorded. */
    async ask(path: string, body: { model: string; stream?: boolean; [field: string]: unknown }): Promise<Answer> {
      for (;;) {
        const [, answer] = await once(path, body)
        if (answer) return answer
        await delay(retryMs)
      }
    },
    /** Submits work, with the same idempotency key until the server has acknowledged it. Returns the answer. */
    async submit(path: string, body: object | FormData, key: string): Promise<Record<string, unknown>> {
      for (;;) {
        const call = callOf(path)
        const response = await send(path, body, { 'idempotency-key': key }).catch(() => undefined)
        const text = await response?.text().catch(() => undefined)
        if (response?.ok && text !== undefined) return JSON.parse(text)
        if (response && text !== undefined)
          box.calls.push({
            ...call,
            ended: box.now(),
            outcome: 'refused',
            detail: `${response.status} ${codeOf(text)}`,
          })
        await delay(retryMs)
      }
    },
    /** Reads something; undefined while the server does not answer. */
    async get(path: string): Promise<Record<string, unknown> | undefined> {
      const response = await send(path).catch(() => undefined)
      const text = await response?.text().catch(() => undefined)
      if (!response || text === undefined || response.status === 503) return undefined
      if (!response.ok) throw new Error(`GET ${path} answered ${response.status}: ${text}`)
      return JSON.parse(text)
    },
    async getText(path: string): Promise<string> {
      const response = await send(path)
      if (!response.ok) throw new Error(`GET ${path} answered ${response.status}: ${await response.text()}`)
      return response.text()
    },
  }
}

function codeOf(text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: string; message?: string } }
    return `${error?.code}: ${error?.message}`
  } catch {
    return text.slice(0, 200)
  }
}

/** The error of a stream that failed after it had begun. */
const errorIn = (events: readonly string[]): string | undefined => {
  const event = events.find(one => one.includes('"error"'))
  return event === undefined ? undefined : `in the stream: ${codeOf(event)}`
}

const connectionErrorOf = (cause: unknown): string => {
  const { message, cause: inner } = cause as Error & { cause?: { code?: string } }
  return inner?.code ?? message
}
