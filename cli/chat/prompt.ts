import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { usageFailure } from '../terminal/exit-codes.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** A content part of a message in the chat API. */
export type PromptPart = { type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } }

/** Maximum bytes of an image: base64 makes it a third larger, and the server takes chats of 32 MiB. */
const maxImageBytes = 20 << 20

/** Joins the words of the command line and, below them, the piped text. Empty when there is neither. */
export const promptOf = (words: readonly string[], piped: string): string =>
  [words.join(' '), piped].filter(text => text.trim() !== '').join('\n\n')

/** Returns the content of a message: plain text, or text and images. */
export function promptContent(prompt: string, images: readonly string[]): string | PromptPart[] {
  if (images.length === 0) return prompt
  return [
    ...(prompt === '' ? [] : [{ type: 'text', text: prompt } as const]),
    ...images.map(image => ({ type: 'image_url', image_url: { url: imageUrl(image) } }) as const),
  ]
}

/** Returns a URL unchanged and a file as a `data:` URL. Throws usage for a file that is too large or not an image. */
export function imageUrl(image: string): string {
  if (/^(https?|data):/i.test(image)) return image
  let bytes: Buffer
  try {
    bytes = readFileSync(image)
  } catch (cause) {
    throw unreadable(`The image ${image}`, cause)
  }
  if (bytes.length > maxImageBytes)
    throw usageFailure(`The image ${basename(image)} is larger than ${maxImageBytes >> 20} MiB. Make it smaller.`)
  const type = mediaType(bytes)
  if (!type) throw usageFailure(`${image} is not an image in a supported format. Give a PNG, JPEG, GIF or WebP file.`)
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** Detects the type by the first bytes, because names can be wrong. */
function mediaType(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, 12).toString('latin1')
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'image/png'
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(head)) return 'image/gif'
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return 'image/webp'
  return undefined
}
