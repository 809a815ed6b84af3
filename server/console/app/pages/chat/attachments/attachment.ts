/** A file of a message. */
export interface Attachment {
  /** Id of the stored file, or the address of an image of an earlier job. */
  id: string
  kind: 'image' | 'audio' | 'text'
  /** Audio ends in `.wav` or `.mp3`, which says its format. */
  name: string
}

export type AttachmentKind = Attachment['kind']

/** The most bytes that the server takes of each kind, unless it is configured for less. */
const maxBytes: Readonly<Record<AttachmentKind, number>> = { image: 10 << 20, audio: 25 << 20, text: 1 << 20 }

/** Files of one message. */
export const maxAttachments = 10

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Returns the format of audio that models take; undefined for other files. */
function audioFormat({ type, name }: Pick<File, 'type' | 'name'>): 'wav' | 'mp3' | undefined {
  if (/^audio\/(mpeg|mp3)$/.test(type) || /\.mp3$/i.test(name)) return 'mp3'
  return /^audio\/(x-|vnd\.)?wav(e)?$/.test(type) || /\.wav$/i.test(name) ? 'wav' : undefined
}

/** What becomes of a file: the kind and the name with which it is sent, or why it cannot be sent. */
export type Sorted =
  | Pick<Attachment, 'kind' | 'name'>
  | { refused: 'large'; kind: AttachmentKind }
  | { refused: 'audioFormat' | 'noText' | 'empty' }

/** Finds out how a file can be sent. A file that is neither image nor audio is one of text if it can be read as UTF-8. */
export async function sortFile(file: File): Promise<Sorted> {
  const { type, name, size } = file
  if (size === 0) return { refused: 'empty' }
  const format = audioFormat(file)
  if (format === undefined && /^(audio|video)\//.test(type)) return { refused: 'audioFormat' }
  // A drawing of SVG is text: models get pixels only.
  const kind = format ? 'audio' : type.startsWith('image/') && type !== 'image/svg+xml' ? 'image' : 'text'
  if (size > maxBytes[kind]) return { refused: 'large', kind }
  if (kind === 'text' && !(await isText(file))) return { refused: 'noText' }
  return { kind, name: format && !name.toLowerCase().endsWith(`.${format}`) ? `${name}.${format}` : name }
}

async function isText(file: File): Promise<boolean> {
  try {
    const text = decoder.decode(await file.arrayBuffer())
    return !text.includes('\0') && !text.startsWith('%PDF-')
  } catch {
    return false
  }
}

/** Returns the first kind of these files that one of the models does not take; undefined if all take all. */
export const kindNotTaken = (
  attachments: readonly Pick<Attachment, 'kind'>[],
  taken: readonly (readonly string[])[],
): Exclude<AttachmentKind, 'text'> | undefined =>
  (['image', 'audio'] as const).find(
    kind =>
      attachments.some(one => one.kind === kind) &&
      taken.some(features => !features.includes(kind === 'image' ? 'images' : 'audio')),
  )
