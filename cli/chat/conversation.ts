import { writeFileSync } from 'node:fs'
import { usageFailure } from '../terminal/exit-codes.ts'
import type { PromptPart } from './prompt.ts'

interface ChatMessage {
  role: 'system' | 'user' | 'assistant'
  content: string | PromptPart[]
}

/** Sampling options from the command's flags. The server decides those that are undefined. */
export interface ChatSettings {
  temperature?: number
  maxTokens?: number
  seed?: number
}

export interface ConversationOptions {
  model: string
  system: string | undefined
  settings: ChatSettings
}

/** Holds the messages so far, the model and the system prompt. */
export function openConversation({ model, system, settings }: ConversationOptions) {
  let history: ChatMessage[] = []
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
    messages: (): ChatMessage[] => withSystem(state.system, history),
    /** The request body for `question`; changes nothing. */
    requestFor(question: ChatMessage['content']): Record<string, unknown> {
      return chatRequest(state, [...history, { role: 'user', content: question }], settings)
    },
    /** Keeps a question and its answer, unless the answer is empty because it failed or was stopped at once. */
    keep(question: ChatMessage['content'], answer: string): void {
      if (answer !== '') history.push({ role: 'user', content: question }, { role: 'assistant', content: answer })
    },
  }
}
export type Conversation = ReturnType<typeof openConversation>

/** Returns the body of a chat completion request, without the streaming options. */
export function chatRequest(
  { model, system }: { model: string; system: string | undefined },
  messages: readonly ChatMessage[],
  { temperature, maxTokens, seed }: ChatSettings,
): Record<string, unknown> {
  return {
    model,
    messages: withSystem(system, messages),
    temperature,
    max_completion_tokens: maxTokens,
    seed,
  }
}

const withSystem = (system: string | undefined, messages: readonly ChatMessage[]): ChatMessage[] =>
  system === undefined ? [...messages] : [{ role: 'system', content: system }, ...messages]

/**
 * Writes a conversation to a new file: as messages of the API if its name ends in `.json`, else as Markdown.
 * Throws usage if the file exists.
 */
export function saveTranscript(path: string, model: string, messages: readonly ChatMessage[]): void {
  const text = path.endsWith('.json')
    ? `${JSON.stringify({ model, messages }, null, 2)}\n`
    : markdownOf(model, messages)
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    throw usageFailure(`The file ${path} exists. Choose another name.`)
  }
}

const heads = { system: 'System prompt', user: 'User', assistant: 'Assistant' } as const

function markdownOf(model: string, messages: readonly ChatMessage[]): string {
  const sections = messages.map(({ role, content }) => `## ${heads[role]}\n\n${textOf(content)}`)
  return `${[`# Chat with ${model}`, ...sections].join('\n\n')}\n`
}

function textOf(content: ChatMessage['content']): string {
  if (typeof content === 'string') return content.trim()
  const images = content.filter(({ type }) => type === 'image_url').length
  const texts = content.flatMap(part => (part.type === 'text' ? [part.text.trim()] : []))
  return [...texts, `(${images} ${images === 1 ? 'image' : 'images'})`].join('\n\n')
}
