import { writeFileSync } from 'node:fs'
import { usageFailure } from '../terminal/exit-codes.ts'
import type { ChatMessage } from './conversation.ts'

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
