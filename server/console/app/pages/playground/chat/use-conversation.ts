import { useEffect, useRef, useState } from 'react'
import { apiMessages, emptyAnswer, type Message } from './conversation.ts'
import { streamAnswer } from './stream-answer.ts'

export interface ConversationOptions {
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
