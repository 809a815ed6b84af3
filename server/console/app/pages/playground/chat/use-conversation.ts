import { useEffect, useMemo, useRef, useState } from 'react'
import { api, at, dataOf } from '../../../api/client.ts'
import { resumableEvents } from '../../../api/resumable.ts'
import { apiMessages, emptyAnswer, questionOf, withChunk } from './conversation.ts'
import type { Message } from './message.ts'

interface ConversationOptions {
  /** Of the task. */
  path: string
  model: string
  /** Of the model's prices. */
  currency: string
  system: string
  /** Further fields of the request. */
  parameters: Readonly<Record<string, unknown>>
  initial: readonly Message[]
}

/** A conversation with one model: its messages, and the answer that grows. */
export function useConversation({ path, model, currency, system, parameters, initial }: ConversationOptions) {
  const [messages, setMessages] = useState<readonly Message[]>(initial)
  const [growing, setGrowing] = useState<Message>()
  const stop = useRef<AbortController>(undefined)
  useEffect(() => () => stop.current?.abort(), [])

  async function answer(asked: readonly Message[]): Promise<void> {
    stop.current?.abort()
    const own = (stop.current = new AbortController())
    setMessages(asked)
    // Whoever answers later, this answer keeps the name of its model.
    const signed = (answer: Message): Message => ({ ...answer, model, currency })
    setGrowing(signed(emptyAnswer))
    const body = { model, ...parameters, messages: apiMessages(system, asked) }
    let latest = emptyAnswer
    const report = (answer: Message) => {
      latest = answer
      if (own === stop.current) setGrowing(signed(answer))
    }
    const ended = await streamAnswer(path, body, report, own.signal).catch(
      (failure: Error): Message => ({ ...latest, failure: failure.message }),
    )
    if (own !== stop.current) return
    setGrowing(undefined)
    setMessages([...asked, signed(ended)])
  }

  return {
    messages,
    growing,
    /** The messages with what the growing answer has so far, as they are if the page is left now. */
    soFar: useMemo(() => withPartial(messages, growing), [messages, growing]),
    ask: (...more: Message[]) => void answer([...messages, ...more]),
    /** Answers the last question again. */
    again: () => {
      const question = questionOf(messages)
      if (question.length > 0) void answer(question)
    },
    stop: () => stop.current?.abort(),
    clear: () => {
      stop.current?.abort()
      stop.current = undefined
      setGrowing(undefined)
      setMessages([])
    },
    /** Brings back what was cleared. */
    restore: setMessages,
  }
}

/** A part of an answer is worth keeping: it was stopped, unless it has all its tokens and only its cost is missing. */
function withPartial(messages: readonly Message[], growing: Message | undefined): readonly Message[] {
  if (!growing || (growing.text === '' && !growing.reasoning && !growing.toolCalls)) return messages
  return [...messages, growing.figures?.outputTokens === undefined ? { ...growing, stopped: true } : growing]
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
