import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

export interface LoadOptions {
  url: string
  secret: string
  model: string
  /** How many streams are open all the time. */
  streams: number
  /** Short requests in each second; fewer where half as many have no answer yet, so that a slow machine keeps up. */
  perSecond: number
  /** Jobs that are submitted in each second, and likewise. */
  jobsPerSecond?: number
  /** Tokens of a stream, and how many come in a second. */
  tokens?: number
  rate?: number
}

/**
 * Sends streams, short requests and jobs to a server, over connections that are kept, until `stop`, which resolves when all
 * that began have ended. A failure is everything but a complete answer.
 */
export function startLoad({
  url,
  secret,
  model,
  streams,
  perSecond,
  jobsPerSecond = 0,
  tokens = 60,
  rate = 30,
}: LoadOptions) {
  // Unused connections end here first: the server closes them after 5 s, perhaps while a request is on its way.
  const agent = new Agent({ keepAlive: true, maxSockets: 1_024, timeout: 2_000 })
  const failures: string[] = []
  const running = new Set<Promise<void>>()
  const stopping = new AbortController()
  let answered = 0
  let slowestMs = 0
  let lastAnswerAt = performance.now()
  let longestGapMs = 0

  const ask = (message: string, stream: boolean) =>
    post('/std/v1/chat/completions', { model, stream, messages: [{ role: 'user', content: message }] })

  function post(path: string, fields: object): Promise<string> {
    const body = JSON.stringify(fields)
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    return new Promise((resolve, reject) => {
      const sent = request(`${url}${path}`, { method: 'POST', agent, headers }, answer => {
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', piece => (text += piece))
        answer.once('end', () =>
          answer.statusCode! < 300 && answer.complete
            ? resolve(text)
            : reject(new Error(`status ${answer.statusCode}: ${text.slice(0, 300)}`)),
        )
        answer.once('error', reject)
      })
      sent.once('error', cause =>
        reject(sent.reusedSocket ? new Error(`${cause.message} on a kept connection`) : cause),
      )
      sent.end(body)
    })
  }

  function track(work: Promise<void>): void {
    const one = work
      .then(
        () => void answered++,
        (thrown: Error) => void failures.push(`${(thrown as NodeJS.ErrnoException).code ?? ''} ${thrown.message}`),
      )
      .finally(() => running.delete(one))
    running.add(one)
  }

  async function stream(): Promise<void> {
    const text = await ask(`mode:stream,tokens=${tokens},rate=${rate}`, true)
    const pieces = text.split('"content":"').length - 1
    if (!text.trimEnd().endsWith('data: [DONE]') || pieces < tokens)
      throw new Error(`a stream had ${pieces} of ${tokens} tokens: ${text.slice(-300)}`)
  }

  async function short(): Promise<void> {
    const began = performance.now()
    await ask('hello', false)
    const now = performance.now()
    slowestMs = Math.max(slowestMs, now - began)
    longestGapMs = Math.max(longestGapMs, now - lastAnswerAt)
    lastAnswerAt = now
  }

  async function submit(): Promise<void> {
    await post('/api/jobs', {
      task: 'std/chat-completion',
      model,
      input: { messages: [{ role: 'user', content: 'hello' }] },
    })
  }

  const keepStreaming = async () => {
    while (!stopping.signal.aborted) {
      const one = stream()
      track(one)
      await one.catch(() => {})
    }
  }
  for (let at = 0; at < streams; at++) void keepStreaming()
  const began = performance.now()
  /** Begins what is due of so many in a second. */
  function openBeat(rate: number, work: () => Promise<void>): () => void {
    let [due, open] = [0, 0]
    return () => {
      for (; due < ((performance.now() - began) / 1_000) * rate; due++) {
        if (open >= rate / 2) continue
        open++
        track(work().finally(() => open--))
      }
    }
  }
  const beats = [openBeat(perSecond, short), openBeat(jobsPerSecond, submit)]
  const timer = setInterval(() => {
    for (const beat of beats) beat()
  }, 5)

  return {
    failures,
    /** The slowest short request and the longest time without the end of one since the last call, milliseconds. */
    takeSlowest() {
      const taken = { slowestMs: Math.round(slowestMs), gapMs: Math.round(longestGapMs) }
      slowestMs = 0
      longestGapMs = 0
      return taken
    },
    get answered() {
      return answered
    },
    async stop(): Promise<{ answered: number; failures: string[] }> {
      clearInterval(timer)
      stopping.abort()
      while (running.size > 0) await Promise.allSettled(running)
      await delay(0)
      agent.destroy()
      return { answered, failures }
    },
  }
}
