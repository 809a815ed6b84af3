import type { ConversationMessage } from '../store/store.ts'

interface SharedFile {
  id: string
  kind: 'image' | 'audio' | 'text'
  name: string
}

/** A message as whoever has a link reads it. */
export interface SharedMessage {
  role: 'user' | 'assistant'
  text: string
  model: string | null
  files: readonly SharedFile[]
}

interface Details {
  role: 'user' | 'assistant' | 'tool'
  model?: string
  files?: readonly SharedFile[]
}

/** Some models write their reasoning into the answer, before it. */
const reasoning = /^\s*<think>[\s\S]*?(?:<\/think>\s*|$)/

/**
 * Returns messages as others read them: what people and models have said to each other, without system prompts, reasoning,
 * tools and figures.
 */
export const sharedMessages = (messages: readonly ConversationMessage[]): SharedMessage[] =>
  messages.flatMap(({ text: written, details }) => {
    const { role, model = null, files = [] } = JSON.parse(details) as Details
    if (role === 'tool') return []
    const text = role === 'assistant' ? written.replace(reasoning, '') : written
    return text.trim() === '' && files.length === 0 ? [] : { role, text, model, files }
  })
