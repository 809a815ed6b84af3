import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { usage } from '../exit-codes.ts'
import { unreadable } from '../unreadable.ts'

/** A part of a message in the words of the chat API. */
export type Part = { type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } }

/** An image grows by a third on its way, and the server takes chats of 32 MiB. */
const largestImage = 20 << 20

/** What is asked: the words of the command line, and below them what was piped in. Empty when there is neither. */
export const promptOf = (words: readonly string[], piped: string): string =>
  [words.join(' '), piped].filter(text => text.trim() !== '').join('\n\n')

/** The content of the question: plain text, or text and images. */
export function contentOf(prompt: string, images: readonly string[]): string | Part[] {
  if (images.length === 0) return prompt
  return [
    ...(prompt === '' ? [] : [{ type: 'text', text: prompt } as const]),
    ...images.map(image => ({ type: 'image_url', image_url: { url: imageUrl(image) } }) as const),
  ]
}

/** An address as it is; a file as a `data:` URL. Throws usage for a file that is no image, or too large. */
export function imageUrl(image: string): string {
  if (/^(https?|data):/i.test(image)) return image
  let bytes: Buffer
  try {
    bytes = readFileSync(image)
  } catch (cause) {
    throw unreadable(`The image ${image}`, cause)
  }
  if (bytes.length > largestImage)
    throw usage(`The image ${basename(image)} is larger than ${largestImage >> 20} MiB. Make it smaller.`)
  const type = mediaType(bytes)
  if (!type) throw usage(`${image} is not an image that models know. Give a PNG, JPEG, GIF or WebP file.`)
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** By its first bytes, because names lie. */
function mediaType(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, 12).toString('latin1')
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'image/png'
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(head)) return 'image/gif'
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return 'image/webp'
  return undefined
}
