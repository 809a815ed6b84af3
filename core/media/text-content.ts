import { invalidValue } from '../failure.ts'
import type { Files } from '../files/files.ts'
import type { FileRecord } from '../store/store.ts'
import { megabytes } from './source.ts'

const decoder = new TextDecoder('utf-8', { fatal: true })
// oxlint-disable-next-line no-control-regex
const binary = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f]/

/** Returns the text of a file; undefined if it is none: not UTF-8, with control characters, or a PDF. Pure. */
export function textContent(bytes: Uint8Array): string | undefined {
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    return undefined
  }
  return binary.test(text) || text.startsWith('%PDF-') ? undefined : text
}

/** Returns a file as a part of a message. */
export const fileAsText = (name: string, text: string): string => `File ${name}:\n\n${text}`

/** More text than models read at once, and little enough to be put into a request in the event loop. */
const maxTextBytes = 1 << 20

/** Resolves with the text of a stored file. Rejects with Failure `invalid_value` for a large one or one without text. */
export async function storedText(file: FileRecord, field: string, files: Pick<Files, 'open'>): Promise<string> {
  if (file.bytes > maxTextBytes)
    throw invalidValue(`'${field}' is larger than ${megabytes(maxTextBytes)}, the most that is read as text.`)
  await using handle = await files.open(file)
  const text = handle && textContent(await handle.readFile())
  if (text !== undefined) return fileAsText(file.name, text)
  throw invalidValue(
    `'${field}' names the file '${file.name}' (${file.contentType}), which is no text. Send its text; send an image as 'image_url' with the id as its 'url'.`,
  )
}
