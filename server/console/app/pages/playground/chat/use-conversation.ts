import { useEffect, useRef, useState } from 'react'
import { api, at, dataOf } from '../../../api/client.ts'
import { resumableEvents } from '../../../api/resumable.ts'
import { apiMessages, emptyAnswer, type Message, withChunk } from './conversation.ts'

interface ConversationOptions {
  /** Of the task. */
  path: string
  model: string
  system: string
  /** Further fields of the request. */
  parameters: Readonly<Record<string, unknown>>
  initial: readonly Message[]
}

/** A conversation with one model: its messages, and the answer that grows. */
export function useConversation({ path, model, system, parameters, initial }: ConversationOptions) {
  const [messages, setMessages] = useState<readonly Message[]>(initial)
  const [growing, setGrowing] = useState<Message>()
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])

  async function answer(asked: readonly Message[]): Promise<void> {
    stop.current?.abort()
    const own = (stop.current = new AbortController())
    setMessages(asked)
    setGrowing(emptyAnswer)
    const body = { model, ...parameters, messages: apiMessages(system, asked) }
    let latest = emptyAnswer
    const report = (answer: Message) => {
      latest = answer
      if (own === stop.current) setGrowing(answer)
    }
    const ended = await streamAnswer(path, body, report, own.signal).catch(
      (failure: Error): Message => ({ ...latest, failure: failure.message }),
    )
    if (own !== stop.current) return
    setGrowing(undefined)
    setMessages([...asked, ended])
  }

  return {
    messages,
    growing,
    ask: (...more: Message[]) => void answer([...messages, ...more]),
    /** Answers the last question again. */
    again: () => {
      const last = messages.findLastIndex(({ role }) => role !== 'assistant')
      if (last >= 0) void answer(messages.slice(0, last + 1))
    },
    stop: () => stop.current?.abort(),
    clear: () => {
      stop.current?.abort()
      stop.current = undefined
      setGrowing(undefined)
      setMessages([])
    },
  }
}
export type Conversation = ReturnType<typeof useConversation>

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

export interface Kept {
  system: string
  messages: readonly Message[]
}
/** The shell removes keys with this beginning at sign-out. */
const key = (token: string) => `infer.person.playground.${token}`
/** Characters. Browsers keep 5 MB for a site. */
const maxLength = 1_000_000
const nothing: Kept = { system: '', messages: [] }

/** Reads the conversation that this browser keeps for a token. */
export function readKept(token: string): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(key(token)) ?? 'null') as Kept | null
    return kept && Array.isArray(kept.messages) ? kept : nothing
  } catch {
    return nothing
  }
}

/** Keeps the conversation; of a very long one its end. */
export function keep(token: string, { system, messages }: Kept): void {
  for (
    let from = 0;
    from < Math.max(1, messages.length);
    from += Math.max(2, Math.ceil((messages.length - from) / 2))
  ) {
    const text = JSON.stringify({ system, messages: messages.slice(from) })
    if (text.length > maxLength) continue
    try {
      return localStorage.setItem(key(token), text)
    } catch {
      // The browser has no room: a shorter part may fit.
    }
  }
}
