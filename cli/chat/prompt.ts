import { readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { mediaType } from '../files/media-type.ts'
import { unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { announceWait, isPiped, readAll } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A content part of a message in the chat API. */
export type PromptPart = { type: 'text'; text: string } | { type: 'image_url'; image_url: { url: string } }

/** Maximum bytes of an image: base64 makes it a third larger, and the server takes chats of 32 MiB. */
const maxImageBytes = 20 << 20

/** Joins the words of the command line and, below them, the piped text. Empty when there is neither. */
export const promptOf = (words: readonly string[], piped: string): string =>
  [words.join(' '), piped].filter(text => text.trim() !== '').join('\n\n')

/** Returns the words, or without any the text that is piped in; empty when there is neither. */
export async function promptOrPiped(words: readonly string[], terminal: Terminal): Promise<string> {
  const isMissing = words.join(' ').trim() === '' && isPiped()
  return promptOf(words, isMissing ? await announceWait(terminal, readAll(terminal.stdin)) : '')
}

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
  const type = mediaType(bytes, image)
  if (!type?.startsWith('image/'))
    throw usageFailure(`${image} is not an image in a supported format. Give a PNG, JPEG, GIF or WebP file.`)
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** Maximum size of an attached text file in bytes: larger files exceed the context of models. */
const maxTextBytes = 1 << 20

/** Holds the images and text files to send with the next message. */
export function openAttachments() {
  let images: string[] = []
  let texts: string[] = []

  return {
    /** Reads an image file, or takes its URL. Throws usage for a file that is not an image. */
    addImage(image: string): void {
      images.push(imageUrl(image))
    },
    /** Reads a text file. Throws usage for a file that is too large or not text. */
    addFile(path: string): void {
      texts.push(`${basename(path)}:\n\`\`\`\n${textOf(path).trimEnd()}\n\`\`\``)
    },
    /** The content of a message with all attachments. */
    contentFor: (question: string): string | PromptPart[] => promptContent([...texts, question].join('\n\n'), images),
    clear(): void {
      images = []
      texts = []
    },
  }
}

function textOf(path: string): string {
  let bytes: Buffer
  try {
    const { size } = statSync(path)
    if (size > maxTextBytes)
      throw usageFailure(`The file ${path} is larger than ${sizeText(maxTextBytes)}. Attach a part of it.`)
    bytes = readFileSync(path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).syscall === undefined) throw cause
    throw unreadable(`The file ${path}`, cause)
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (!text.includes('\0')) return text
  } catch {
    // The error below is the same as for a zero byte.
  }
  throw usageFailure(`The file ${path} is not text. Attach an image with /image.`)
}
