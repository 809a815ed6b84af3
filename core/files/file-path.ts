import { join } from 'node:path'
import { isId } from '../ids.ts'
import type { ApiPurpose, FilePurpose, NewFile } from '../store/store.ts'
import type { Written } from './write.ts'

/** What the caller knows about a new file; size and hash are measured. */
export interface FileFacts {
  /** Characters that file names must not have are replaced. */
  name: string
  contentType: string
  purpose: FilePurpose
  /** Default: `user_data` for an upload; other files are not in the files API. */
  apiPurpose?: ApiPurpose
  width?: number | null
  height?: number | null
  durationMs?: number | null
  jobId?: string | null
  /** Epoch milliseconds, or how long it is kept from its creation on; null, of either: until it is removed. */
  expiresAt: number | { keptMs: number | null } | null
}

/** Returns the row of a file whose bytes were written. An upload is user data unless the caller named a purpose. */
export const newFileOf = (
  id: string,
  organizationId: string,
  facts: FileFacts,
  { bytes, sha256 }: Pick<Written, 'bytes' | 'sha256'>,
): NewFile => {
  const { purpose, expiresAt, width = null, height = null, durationMs = null, jobId = null } = facts
  const { apiPurpose = purpose === 'upload' ? 'user_data' : null } = facts
  const name = safeFileName(facts.name, 'file')
  const kind = { purpose, apiPurpose, name, contentType: safeContentType(facts.contentType), width, height, durationMs }
  const createdAt = Date.now()
  return { id, organizationId, ...kind, bytes, sha256, jobId, createdAt, expiresAt: endOf(expiresAt, createdAt) }
}

function endOf(expiresAt: FileFacts['expiresAt'], createdAt: number): number | null {
  if (expiresAt === null || typeof expiresAt === 'number') return expiresAt
  return expiresAt.keptMs === null ? null : createdAt + expiresAt.keptMs
}

/** File extensions of the known types. Files of other types are served as bytes. */
const extensions: Readonly<Record<string, string>> = {
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
  'audio/webm': 'webm',
  'text/plain': 'txt',
  'text/csv': 'csv',
  'text/markdown': 'md',
  'application/json': 'json',
  'application/jsonl': 'jsonl',
  'application/pdf': 'pdf',
}

/** Returns the content type if it is a known one, otherwise that of bytes: never a type that a browser would run. */
export function safeContentType(given: string): string {
  const type = given.split(';')[0]!.trim().toLowerCase()
  return Object.hasOwn(extensions, type) ? type : 'application/octet-stream'
}

/** Returns the path of a file on the disk. It contains only checked ids of our own, so no name can lead outside. */
export function filePathOf(folder: string, file: { id: string; organizationId: string; contentType: string }): string {
  const { id, organizationId, contentType } = file
  if (!(isId(id, 'file-') && isId(organizationId, 'org_')))
    throw new Error('a file or its organization has an invalid id')
  return join(folder, organizationId, `${id}.${extensions[safeContentType(contentType)] ?? 'bin'}`)
}

/** Returns the id of a file from its name on the disk. */
export const idOfName = (name: string): string => name.slice(0, name.indexOf('.'))

// oxlint-disable-next-line no-control-regex
const forbidden = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\:*?"<>|]/g

/**
 * Returns a name under which a client may save the file: no path, no control characters, at most 128 characters with the
 * extension kept. `fallback` is returned if nothing remains.
 */
export function safeFileName(given: string, fallback: string): string {
  const name = given
    .toWellFormed()
    .normalize('NFC')
    .split(/[/\\]/)
    .at(-1)!
    .replace(forbidden, '_')
    .trim()
    .replace(/^\.+/, '')
  if (name === '') return fallback
  if (name.length <= 128) return name
  const extension = /\.[A-Za-z0-9]{1,8}$/.exec(name)?.[0] ?? ''
  return (
    name
      .slice(0, 128 - extension.length)
      .toWellFormed()
      .replaceAll('\ufffd', '_') + extension
  )
}
