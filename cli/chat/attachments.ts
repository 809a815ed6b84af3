import { readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { usage } from '../exit-codes.ts'
import { sizeText } from '../quantities-text.ts'
import { contentOf, imageUrl, type Part } from '../run/prompt.ts'
import { unreadable } from '../unreadable.ts'

/** The longest text file that goes with a message, in bytes: models read no more than that. */
const largestText = 1 << 20

/** Images and text files that go with the next message. */
export function openAttachments() {
  let images: string[] = []
  let texts: string[] = []

  return {
    /** Reads an image file, or takes its address. Throws usage for what is no image. */
    addImage(image: string): void {
      images.push(imageUrl(image))
    },
    /** Reads a text file. Throws usage for a file that is too large or is no text. */
    addFile(path: string): void {
      texts.push(`${basename(path)}:\n\`\`\`\n${textOf(path).trimEnd()}\n\`\`\``)
    },
    /** The content of a message with everything that was added. */
    contentFor: (question: string): string | Part[] => contentOf([...texts, question].join('\n\n'), images),
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
    if (size > largestText)
      throw usage(`The file ${path} is larger than ${sizeText(largestText)}. Attach a part of it.`)
    bytes = readFileSync(path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).syscall === undefined) throw cause
    throw unreadable(`The file ${path}`, cause)
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (!text.includes('\0')) return text
  } catch {
    // Said below, in the same words as for a zero byte.
  }
  throw usage(`The file ${path} is no text. Attach an image with /image.`)
}
