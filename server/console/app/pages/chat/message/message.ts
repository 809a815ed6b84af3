import type { Attachment } from '../attachments/attachment.ts'

/** One call of a tool by the model. */
export interface ToolCall {
  id: string
  name: string
  /** JSON text. */
  arguments: string
}

/** What an answer took. */
export interface Figures {
  /** Milliseconds from sending to the first text, and to the end. */
  firstMs?: number
  totalMs: number
  inputTokens?: number
  outputTokens?: number
  cost?: number
}

export interface Message {
  role: 'user' | 'assistant' | 'tool'
  text: string
  /** Who answered, and the currency of its prices. */
  model?: string
  currency?: string
  files?: readonly Attachment[]
  reasoning?: string
  toolCalls?: readonly ToolCall[]
  /** Of a message with the result of a tool. */
  toolCallId?: string
  figures?: Figures
  /** Why the answer is incomplete. */
  failure?: string
  stopped?: true
}
