import { bytesOfBase64, contentStart } from '../../data-url.ts'
import { invalid } from '../../failure.ts'
import { fileAsText, textContent } from '../../media/text-content.ts'
import type { ChatRequest } from '../../schemas/chat.ts'

type Messages = ChatRequest['messages']

/** Returns the bytes of `file_data`: base64, alone or in a `data:` URL. */
function bytesOf(data: string, param: string): Uint8Array {
  const bytes = bytesOfBase64(data.slice(contentStart(data) ?? 0))
  if (bytes) return bytes
  throw invalid(`${param}.file_data`, `'${param}.file_data' must be base64 or a data: URL with base64.`)
}

/**
 * Replaces files that messages contain by their text, so that every model can read them. A file without text, such as a
 * PDF, is passed to an engine that takes files. Throws Failure `unsupported_parameter` for others.
 */
export function inlineTextFiles(messages: Messages, takesFiles: boolean): Messages {
  if (!messages.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type === 'file')))
    return messages
  return messages.map((message, at) => {
    if (!Array.isArray(message.content)) return message
    const content = message.content.map((part, place) => {
      if (part.type !== 'file') return part
      const param = `messages[${at}].content[${place}].file`
      const { file_data: data, file_id: id, filename = 'file' } = part.file
      if ((data === undefined) === (id === undefined))
        throw invalid(param, `'${param}' must have exactly one of 'file_data' and 'file_id'.`)
      if (data === undefined) return part
      const text = textContent(bytesOf(data, param))
      if (text !== undefined) return { type: 'text' as const, text: fileAsText(filename, text) }
      if (takesFiles) return part
      throw invalid(
        param,
        `The file '${filename}' is no text, and this model reads only text files, such as txt, md, json and csv. Send its text instead.`,
        'unsupported_parameter',
      )
    })
    return { ...message, content } as typeof message
  })
}
