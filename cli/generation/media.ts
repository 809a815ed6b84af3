import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { type Client, dataOf } from '../client/client.ts'
import { mediaType } from '../files/media-type.ts'
import { CommandFailure, unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Medium } from './target.ts'

/** Maximum bytes that the server takes. The limit for videos is configurable, so the server checks it. */
const maxBytes: Record<Medium, number> = {
  image: 10 << 20,
  mask: 10 << 20,
  audio: 25 << 20,
  video: 2 ** 40,
}
/**
 * Maximum bytes of a file inside the request, where base64 makes it a third larger. Larger files are uploaded first.
 */
const maxInlineBytes = 4 << 20

const kinds: Record<Medium, string> = {
  image: 'a JPEG, PNG, WebP, GIF or AVIF image',
  mask: 'a JPEG, PNG, WebP, GIF or AVIF image',
  audio: 'audio in a supported format (WAV, MP3, M4A, FLAC, Ogg)',
  video: 'a video in a supported format (MP4, WebM, MOV)',
}

/** Whether the server resolves the value: an http(s) URL, a data: URL or a file id. */
export const isAddress = (value: string): boolean => /^(https?:\/\/|data:|file-[0-9A-Z]{26}$)/i.test(value)

/** Checks that a file can be read, before any request. Throws with exit code 74. */
export function checkReadable(what: string, value: string): void {
  if (isAddress(value)) return
  try {
    if (!statSync(value).isFile()) throw new Error('it is not a file')
  } catch (cause) {
    throw unreadable(`The ${what} ${value}`, cause)
  }
}

/** A file to upload before the request, because it is too large for the request. */
export interface PendingUpload {
  path: string
  type: string
  size: number
}

/**
 * Returns a URL unchanged, a small file as a `data:` URL, and a large file as a pending upload. Throws usage for a file
 * that is too large or of another kind.
 */
export function mediaOf(
  what: Medium,
  value: string,
  { flag = `--${what}` }: { flag?: string } = {},
): string | PendingUpload {
  if (isAddress(value)) return value
  try {
    const { size } = statSync(value)
    if (size > maxBytes[what])
      throw usageFailure(
        `${basename(value)} has ${sizeText(size)}; ${flag} takes at most ${sizeText(maxBytes[what])}. Make it smaller.`,
      )
    const type = mediaType(headOf(value), value)
    if (!type || !fits(what, type)) throw usageFailure(`${value} is not ${kinds[what]}, which ${flag} needs.`)
    if (size > maxInlineBytes) return { path: value, type, size }
    return `data:${type};base64,${readFileSync(value, 'base64')}`
  } catch (cause) {
    if (cause instanceof CommandFailure) throw cause
    throw unreadable(`The ${what} ${value}`, cause)
  }
}

function headOf(path: string): Buffer {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(16)
    return head.subarray(0, readSync(file, head))
  } finally {
    closeSync(file)
  }
}

/** Lifetime of an upload, in seconds. Submitting the job copies the file. */
const keptSeconds = 3_600

/** Uploads a file, and resolves with its URL on the server. */
export async function uploadMedia(
  client: Client,
  { path, type, size }: PendingUpload,
  terminal: Terminal,
  seconds = keptSeconds,
): Promise<string> {
  const name = basename(path)
  terminal.waiting(`Sending ${printable(name)} (${sizeText(size)})…`)
  try {
    const initiated = client.api.POST('/fal/rest/storage/upload/initiate', {
      body: { content_type: type, file_name: name },
      headers: { 'x-fal-object-lifecycle': JSON.stringify({ expiration_duration_seconds: seconds }) },
    })
    const { upload_url, file_url } = await dataOf(initiated)
    await client.put(upload_url, createReadStream(path), { 'content-type': type, 'content-length': String(size) })
    return file_url
  } finally {
    terminal.progress('')
  }
}

const fits = (what: Medium, type: string): boolean =>
  what === 'image' || what === 'mask'
    ? type.startsWith('image/')
    : what === 'audio'
      ? type.startsWith('audio/') || type === 'video/mp4' || type === 'video/webm'
      : type.startsWith('video/')
