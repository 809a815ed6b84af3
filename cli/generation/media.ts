import { closeSync, createReadStream, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { z } from 'zod'
import type { Client } from '../client.ts'
import { CommandFailure, usage } from '../exit-codes.ts'
import { printable } from '../paint.ts'
import { sizeText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'
import { unreadable } from '../unreadable.ts'
import type { Medium } from './target.ts'

/** What the server takes of each; of videos what it is configured to take, which it says itself. */
const largest: Record<Medium, number> = {
  image: 10 << 20,
  mask: 10 << 20,
  audio: 25 << 20,
  video: 2 ** 40,
}
/** Up to this size a file travels inside the request, a third larger; a larger one is sent before. */
const largestInside = 4 << 20

const kinds: Record<Medium, string> = {
  image: 'a PNG or JPEG picture',
  mask: 'a PNG or JPEG picture',
  audio: 'sound that is known here (WAV, MP3, M4A, FLAC, Ogg)',
  video: 'a video that is known here (MP4, WebM, MOV)',
}

/** Whether it is for the server to fetch or to look up: an address, a data: URL, the id of a file. */
export const isAddress = (value: string): boolean => /^(https?:\/\/|data:|file-[0-9A-Z]{26}$)/i.test(value)

/** Whether a file can be read at all; said before anything is asked of a server. Throws with exit code 74. */
export function checkReadable(what: string, value: string): void {
  if (isAddress(value)) return
  try {
    if (!statSync(value).isFile()) throw new Error('it is no file')
  } catch (cause) {
    throw unreadable(`The ${what} ${value}`, cause)
  }
}

/** A file that is sent before the request, because it is too large to travel inside. */
export interface PendingUpload {
  path: string
  type: string
  size: number
}

/**
 * An address as it is; a small file as a `data:` URL, a large one as what has to be sent first. Throws usage for a file
 * that is too large or not of the kind.
 */
export function mediaOf(what: Medium, value: string, flag = `--${what}`): string | PendingUpload {
  if (isAddress(value)) return value
  try {
    const { size } = statSync(value)
    if (size > largest[what])
      throw usage(
        `${basename(value)} has ${sizeText(size)}; ${flag} takes at most ${sizeText(largest[what])}. Make it smaller.`,
      )
    const type = mediaType(headOf(value), value)
    if (!type || !fits(what, type)) throw usage(`${value} is not ${kinds[what]}; that is what ${flag} takes.`)
    if (size > largestInside) return { path: value, type, size }
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

const Upload = z.looseObject({ upload_url: z.string(), file_url: z.string() })
/** It is copied when the job is submitted. */
const keptSeconds = 3_600

/** Sends a file, and resolves with the address under which the server knows it. */
export async function uploadFile(
  client: Client,
  { path, type, size }: PendingUpload,
  terminal: Terminal,
  seconds = keptSeconds,
): Promise<string> {
  const name = basename(path)
  terminal.waiting(`Sending ${printable(name)} (${sizeText(size)})…`)
  try {
    const { upload_url, file_url } = await client.ask({
      method: 'POST',
      path: '/fal/rest/storage/upload/initiate',
      body: { content_type: type, file_name: name },
      headers: { 'x-fal-object-lifecycle': JSON.stringify({ expiration_duration_seconds: seconds }) },
      answer: Upload,
    })
    await client.put(upload_url, createReadStream(path), { 'content-type': type, 'content-length': String(size) })
    return file_url
  } finally {
    terminal.progress('')
  }
}

const fits = (what: Medium, type: string): boolean =>
  what === 'image' || what === 'mask'
    ? type === 'image/png' || type === 'image/jpeg'
    : what === 'audio'
      ? type.startsWith('audio/') || type === 'video/mp4' || type === 'video/webm'
      : type.startsWith('video/')

/** By its first bytes, because names lie; a name tells sound from pictures in a container that holds both. */
function mediaType(bytes: Buffer, path: string): string | undefined {
  const head = bytes.subarray(0, 16).toString('latin1')
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'image/png'
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'image/jpeg'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WAVE') return 'audio/wav'
  if (head.startsWith('fLaC')) return 'audio/flac'
  if (head.startsWith('OggS')) return 'audio/ogg'
  if (head.startsWith('ID3') || /^\u00ff[\u00e2-\u00ff]/.test(head)) return 'audio/mpeg'
  if (head.slice(4, 8) === 'ftyp')
    return head.slice(8, 11) === 'M4A' || extname(path).toLowerCase() === '.m4a'
      ? 'audio/mp4'
      : head.slice(8, 10) === 'qt'
        ? 'video/quicktime'
        : 'video/mp4'
  if (head.startsWith('\u001aE\u00df\u00a3')) return 'video/webm'
  return undefined
}
