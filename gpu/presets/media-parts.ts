import { randomUUID } from 'node:crypto'
import type { ChatRequest } from '../../core/schemas/chat.ts'
import type { Message } from '../engines/gguf/tools/conversation.ts'

type Content = ChatRequest['messages'][number]['content']
type Part = Exclude<Content, string | null | undefined>[number]

/** A message as an engine gets it: its content is one text, or a list of texts, images and audio. */
export type MessageWithMedia = Omit<Message, 'content'> & { content: string | null | Part[] }

/**
 * Replaces the images and audio in the messages of one request by marks, so that the messages can be changed as text,
 * and restores them afterwards. The marks are random, so that no sender can guess them.
 */
export function openMediaParts() {
  const kept: Part[] = []
  const mark = randomUUID()
  const marks = new RegExp(`\\n?${mark}:(\\d+);\\n?`)

  function textOf(part: Part): string {
    if ('text' in part) return part.text
    if ('refusal' in part) return part.refusal
    return `${mark}:${kept.push(part) - 1};`
  }

  return {
    /** Returns the content of a message as one text. */
    taken: (content: Content): string | null =>
      Array.isArray(content) ? content.map(textOf).join('\n') : (content ?? null),
    /** Returns the message with the media that its marks stand for. */
    restored: (message: Message): MessageWithMedia => {
      // Texts alternate with the numbers of the media parts between them.
      const pieces = message.content?.split(marks) ?? []
      if (pieces.length < 2) return message
      const parts = pieces.map(
        (piece, at): Part => (at % 2 === 1 ? kept[Number(piece)]! : { type: 'text', text: piece }),
      )
      return { ...message, content: parts.filter(part => !('text' in part) || part.text !== '') }
    },
  }
}
