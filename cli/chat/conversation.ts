import type { Part } from '../run/prompt.ts'

export interface Message {
  role: 'system' | 'user' | 'assistant'
  content: string | Part[]
}

/** How the model is asked, from the command's flags; what is undefined is left to the server. */
export interface ChatSettings {
  temperature?: number
  maxTokens?: number
  seed?: number
}

/** What was said so far, with whom, and under which instruction. */
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
    instruct(text: string | undefined): void {
      state.system = text
    },
    clear(): void {
      history = []
    },
    /** What was said so far, under the instruction. */
    messages: (): Message[] => withInstruction(state.system, history),
    /** The request that puts `question` to the model; changes nothing yet. */
    requestFor(question: Message['content']): Record<string, unknown> {
      return requestOf(state, [...history, { role: 'user', content: question }], settings)
    },
    /** Keeps a question and its answer. An answer of nothing (stopped at once, or failed) leaves no trace. */
    keep(question: Message['content'], answer: string): void {
      if (answer !== '') history.push({ role: 'user', content: question }, { role: 'assistant', content: answer })
    },
  }
}
export type Conversation = ReturnType<typeof openConversation>

/** The body of a chat completion; streaming is added by who streams. */
export function requestOf(
  { model, system }: { model: string; system: string | undefined },
  messages: readonly Message[],
  { temperature, maxTokens, seed }: ChatSettings,
): Record<string, unknown> {
  return {
    model,
    messages: withInstruction(system, messages),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
    ...(seed === undefined ? {} : { seed }),
  }
}

const withInstruction = (system: string | undefined, messages: readonly Message[]): Message[] =>
  system === undefined ? [...messages] : [{ role: 'system', content: system }, ...messages]
