import type { Part } from './prompt.ts'

export interface Message {
  role: 'system' | 'user' | 'assistant'
  content: string | Part[]
}

/** Sampling options from the command's flags. The server decides those that are undefined. */
export interface ChatSettings {
  temperature?: number
  maxTokens?: number
  seed?: number
}

/** Holds the messages so far, the model and the system prompt. */
export function openConversation({
  model,
  system,
  settings,
}: {
  model: string
  system: string | undefined
  settings: ChatSettings
}) {
  let history: Message[] = []
  const state = { model, system }

  return {
    model: (): string => state.model,
    system: (): string | undefined => state.system,
    switchModel(id: string): void {
      state.model = id
    },
    setSystem(text: string | undefined): void {
      state.system = text
    },
    clear(): void {
      history = []
    },
    /** The system prompt, if there is one, and the messages so far. */
    messages: (): Message[] => withSystem(state.system, history),
    /** The request body for `question`; changes nothing. */
    requestFor(question: Message['content']): Record<string, unknown> {
      return requestOf(state, [...history, { role: 'user', content: question }], settings)
    },
    /** Keeps a question and its answer, unless the answer is empty because it failed or was stopped at once. */
    keep(question: Message['content'], answer: string): void {
      if (answer !== '') history.push({ role: 'user', content: question }, { role: 'assistant', content: answer })
    },
  }
}
export type Conversation = ReturnType<typeof openConversation>

/** Returns the body of a chat completion request, without the streaming options. */
export function requestOf(
  { model, system }: { model: string; system: string | undefined },
  messages: readonly Message[],
  { temperature, maxTokens, seed }: ChatSettings,
): Record<string, unknown> {
  return {
    model,
    messages: withSystem(system, messages),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
    ...(seed === undefined ? {} : { seed }),
  }
}

const withSystem = (system: string | undefined, messages: readonly Message[]): Message[] =>
  system === undefined ? [...messages] : [{ role: 'system', content: system }, ...messages]
