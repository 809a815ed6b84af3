import { join } from 'node:path'
import { isId } from '../ids.ts'

/** The endings of the types that we know. What is not among them is bytes to us, and is served as bytes. */
const endings: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'audio/wav': 'wav',
  'audio/mpeg': 'mp3',
  'audio/flac': 'flac',
  'audio/ogg': 'ogg',
  'audio/mp4': 'm4a',
}

/** A content type that a browser may be told, of what somebody says it is: never one that it would run. */
export function safeContentType(given: string): string {
  const type = given.split(';')[0]!.trim().toLowerCase()
  return Object.hasOwn(endings, type) ? type : 'application/octet-stream'
}

/** What a file is called on the disk: made of ids of ours only, each checked, so that no name leads elsewhere. */
export function filePathOf(folder: string, file: { id: string; organizationId: string; contentType: string }): string {
  const { id, organizationId, contentType } = file
  if (!(isId(id) && id.startsWith('file-') && isId(organizationId) && organizationId.startsWith('org_')))
    throw new Error('a file has an id that is none')
  return join(folder, organizationId, `${id}.${endings[safeContentType(contentType)] ?? 'bin'}`)
}

/** The id of the file that lies under this name, as `filePathOf` made it. */
export const idOfName = (name: string): string => name.slice(0, name.indexOf('.'))

// oxlint-disable-next-line no-control-regex
const unfit = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\:*?"<>|]/g

/** A name as a reader may save it: no path, no control characters, at most 128 characters, its ending kept. */
export function safeFileName(given: string, otherwise: string): string {
  const name = given
    .toWellFormed()
    .normalize('NFC')
    .split(/[/\\]/)
    .at(-1)!
    .replace(unfit, '_')
    .trim()
    .replace(/^\.+/, '')
  if (name === '') return otherwise
  if (name.length <= 128) return name
  const ending = /\.[A-Za-z0-9]{1,8}$/.exec(name)?.[0] ?? ''
  return (
    name
      .slice(0, 128 - ending.length)
      .toWellFormed()
      .replaceAll('\ufffd', '_') + ending
  )
}
