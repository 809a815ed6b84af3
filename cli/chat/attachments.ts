import { readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { unreadable } from '../terminal/unreadable.ts'
import { imageUrl, type PromptPart, promptContent } from './prompt.ts'

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
