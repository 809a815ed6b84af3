import type { Attachment } from '../attachments/attachment.ts'
import type { Message } from './message.ts'

/** Returns the messages as the API takes them. An answer that failed before its first character is left out. */
export function apiMessages(system: string, messages: readonly Message[]): object[] {
  const sent = messages.filter(({ role, text, toolCalls }) => role !== 'assistant' || text !== '' || toolCalls?.length)
  return [...(system.trim() === '' ? [] : [{ role: 'system', content: system }]), ...sent.map(apiMessage)]
}

function apiMessage({ role, text, files = [], toolCalls = [], toolCallId }: Message): object {
  if (role === 'tool') return { role, tool_call_id: toolCallId, content: text }
  if (role === 'assistant')
    return {
      role,
      content: text,
      tool_calls:
        toolCalls.length === 0
          ? undefined
          : toolCalls.map(({ id, ...called }) => ({ id, type: 'function', function: called })),
    }
  if (files.length === 0) return { role, content: text }
  return { role, content: [...files.map(filePart), ...(text === '' ? [] : [{ type: 'text', text }])] }
}

/** The server puts the file in the place of its id. */
function filePart({ id, kind, name }: Attachment): object {
  if (kind === 'image') return { type: 'image_url', image_url: { url: id } }
  if (kind === 'text') return { type: 'file', file: { file_id: id } }
  return { type: 'input_audio', input_audio: { data: id, format: name.toLowerCase().endsWith('.mp3') ? 'mp3' : 'wav' } }
}

/** The parts of messages that are files. */
interface FilePart {
  image_url?: { url: string }
  input_audio?: { data: string; format: string }
  file?: { file_id?: string; filename?: string }
}

/** Returns the file of a part; undefined for a part without one, and for content that has no address. */
function attachmentOf({ image_url, input_audio, file }: FilePart): Attachment | undefined {
  if (image_url) return { id: image_url.url, kind: 'image', name: '' }
  if (input_audio?.data.startsWith('file-'))
    return { id: input_audio.data, kind: 'audio', name: `audio.${input_audio.format}` }
  return file?.file_id ? { id: file.file_id, kind: 'text', name: file.filename ?? file.file_id } : undefined
}

/** Returns the conversation that the messages of an API request make, such as those of an earlier job. */
export function conversationOf(sent: unknown): { system: string; messages: Message[] } {
  const system: string[] = []
  const messages: Message[] = []
  for (const one of Array.isArray(sent) ? (sent as Record<string, unknown>[]) : []) {
    const parts = Array.isArray(one.content) ? (one.content as Record<string, never>[]) : []
    const text = typeof one.content === 'string' ? one.content : parts.map(part => part.text ?? '').join('')
    if (one.role === 'system' || one.role === 'developer') system.push(text)
    else if (one.role === 'user') {
      const files = parts.flatMap(part => attachmentOf(part) ?? [])
      messages.push({ role: 'user', text, files: files.length > 0 ? files : undefined })
    } else if (one.role === 'tool') messages.push({ role: 'tool', text, toolCallId: String(one.tool_call_id) })
    else if (one.role === 'assistant') {
      const calls = (one.tool_calls ?? []) as { id: string; function: { name: string; arguments: string } }[]
      const toolCalls = calls.map(({ id, function: called }) => ({ id, ...called }))
      messages.push({ role: 'assistant', text, toolCalls: toolCalls.length > 0 ? toolCalls : undefined })
    }
  }
  return { system: system.join('\n\n'), messages }
}
