import { readFileSync, statSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { CommandFailure, exitCodes, usage } from '../exit-codes.ts'
import { sizeText } from '../quantities-text.ts'
import type { Medium } from './target.ts'

/** What the server takes of each, as a file; a file grows by a third on its way. */
const largest: Record<Medium, number> = {
  image: 10 << 20,
  mask: 10 << 20,
  audio: 22 << 20,
  video: 22 << 20,
}
/** All of a request, as the server takes it. */
const largestTogether = 31 << 20

const kinds: Record<Medium, string> = {
  image: 'a PNG or JPEG picture',
  mask: 'a PNG or JPEG picture',
  audio: 'sound that is known here (WAV, MP3, M4A, FLAC, Ogg)',
  video: 'a video that is known here (MP4, WebM, MOV)',
}

/** Whether it is for the server to fetch or to look up: an address, a data: URL, the id of a file. */
const isAddress = (value: string): boolean => /^(https?:\/\/|data:|file-[0-9A-Z]{26}$)/i.test(value)

/** Whether a file can be read at all; said before anything is asked of a server. Throws with exit code 74. */
export function checkReadable(what: string, value: string): void {
  if (isAddress(value)) return
  try {
    if (!statSync(value).isFile()) throw new Error('it is no file')
  } catch (cause) {
    throw unreadable(what, value, cause)
  }
}

const unreadable = (what: string, path: string, cause: unknown) =>
  new CommandFailure(
    exitCodes.io,
    'invalid_value',
    `The ${what} ${path} cannot be read: ${(cause as Error).message}.`,
    {
      cause,
    },
  )

/** An address as it is; a file as a `data:` URL. Throws usage for a file that is too large or not of the kind. */
export function mediaUrl(what: Medium, value: string): string {
  if (isAddress(value)) return value
  let bytes: Buffer
  try {
    const { size } = statSync(value)
    if (size > largest[what])
      throw usage(
        `${basename(value)} has ${sizeText(size)}; --${what} takes at most ${sizeText(largest[what])}. Make it smaller, or give an address from which the server fetches it.`,
      )
    bytes = readFileSync(value)
  } catch (cause) {
    if (cause instanceof CommandFailure) throw cause
    throw unreadable(what, value, cause)
  }
  const type = mediaType(bytes, value)
  if (!type || !fits(what, type)) throw usage(`${value} is not ${kinds[what]}; that is what --${what} takes.`)
  return `data:${type};base64,${bytes.toString('base64')}`
}

/** Throws usage when the media of one request are together more than a server takes. */
export function checkTogether(urls: readonly (string | undefined)[]): void {
  const sum = urls.reduce((all, url) => all + (url?.length ?? 0), 0)
  if (sum > largestTogether)
    throw usage(
      `The files together are ${sizeText(sum)} on their way; a request takes ${sizeText(largestTogether)}. Make them smaller, or give addresses from which the server fetches them.`,
    )
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
