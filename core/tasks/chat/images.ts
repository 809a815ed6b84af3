import { randomBytes } from 'node:crypto'
import { bufferOf } from '../../cpu/thread-work.ts'
import { bytesOfBase64, contentStart, isDataUrl } from '../../data-url.ts'
import { Failure, invalid } from '../../failure.ts'
import type { Media, MediaSender } from '../../media/media.ts'
import type { ChatRequest } from '../../schemas/chat.ts'
import type { ImageReference, PreparedRequest } from '../engine-request.ts'
import { afterReplacement } from './truncation.ts'

/** Maximum images and files of one request that are sent as URLs or ids; more can be sent as data: URLs. */
const maxFetched = 16
/** How many images of one request are processed at once. */
const concurrency = 4
/** Maximum bytes of all images of one request as engines get them. A body within its limit rarely comes near it. */
const maxFilledBytes = 128 << 20

const marks = /image:[0-9a-f]{32}/g

/**
 * Replaces every image and every id of a stored file in the messages by a mark. Engines get no URL and no image as it
 * was sent, so images and files replace the marks after they were fetched, checked and re-encoded. Throws Failure
 * `invalid_value` for too many, and for a data: URL without base64.
 */
export function markImages(messages: ChatRequest['messages']): {
  messages: ChatRequest['messages']
  images: ImageReference[]
} {
  const images: ImageReference[] = []
  if (!messages.some(({ content }) => Array.isArray(content))) return { messages, images }
  let fetched = 0
  function mark(param: string, value: ImageReference['value'], kind?: ImageReference['kind']): string {
    // Random, so that no text of the caller can contain it.
    const placeholder = `image:${randomBytes(16).toString('hex')}`
    images.push({ mark: placeholder, param, value, kind })
    if (typeof value === 'string' && ++fetched > maxFetched)
      throw invalid(
        param,
        `More than ${maxFetched} images and files are sent as http(s) URLs or ids. Send the others as data: URLs.`,
      )
    return placeholder
  }
  const marked = messages.map((message, at) => {
    if (!Array.isArray(message.content)) return message
    const content = message.content.map((part, place) => {
      if (part.type === 'file' && part.file.file_id !== undefined) {
        const param = `messages[${at}].content[${place}].file.file_id`
        return { type: 'text' as const, text: mark(param, part.file.file_id, 'text') }
      }
      if (part.type === 'input_audio' && part.input_audio.data.startsWith('file-')) {
        const param = `messages[${at}].content[${place}].input_audio.data`
        return { ...part, input_audio: { ...part.input_audio, data: mark(param, part.input_audio.data, 'audio') } }
      }
      if (part.type !== 'image_url') return part
      const param = `messages[${at}].content[${place}].image_url.url`
      const { url } = part.image_url
      const placeholder = mark(param, isDataUrl(url) ? contentOf(url, param) : url)
      return { ...part, image_url: { ...part.image_url, url: placeholder } }
    })
    return { ...message, content } as typeof message
  })
  return { messages: images.length === 0 ? messages : marked, images }
}

function contentOf(url: string, param: string): Uint8Array<ArrayBuffer> {
  const start = contentStart(url)
  const bytes = start === undefined ? undefined : bytesOfBase64(url.slice(start))
  if (bytes) return bytes
  throw invalid(param, `'${param}' must be a data: URL of the form data:<type>;base64,<content>.`)
}

/** What replaces a mark: characters that need no escaping in a JSON text; bytes are ASCII. */
export type Replacement = string | Uint8Array

/** Returns a `fetch` for `withImages`: images as data: URLs, audio as base64, and text as the content of a JSON string. */
export const fetchFrom =
  (media: Pick<Media, 'imageDataUrl' | 'fileText' | 'audioBase64'>, sender: MediaSender) =>
  async ({ kind, param, value }: ImageReference): Promise<Replacement> => {
    if (kind === undefined || typeof value !== 'string') return media.imageDataUrl(sender, param, value)
    if (kind === 'audio') return media.audioBase64(sender, param, value)
    return JSON.stringify(await media.fileText(sender, param, value)).slice(1, -1)
  }

/** The bodies of a request with their marks, and what replaces them. */
export interface Filling extends Pick<PreparedRequest, 'bodies' | 'droppable'> {
  replacements: readonly [mark: string, replacement: Replacement][]
}

/** Replaces the marks in the bodies. Pure; runs in the event loop or in a thread. */
export function filled({ bodies, droppable, replacements }: Filling): Pick<PreparedRequest, 'bodies' | 'droppable'> {
  const byMark = new Map(replacements)
  let cut = droppable
  const whole = bodies.map(body => {
    const bytes = typeof body === 'string' ? Buffer.from(body) : bufferOf(body)
    const pieces: Uint8Array[] = []
    let from = 0
    /** Characters of the pieces: what can be left out is counted in these. */
    let length = 0
    for (const { 0: mark, index } of bytes.toString('latin1').matchAll(marks)) {
      const replacement = byMark.get(mark)
      if (replacement === undefined) continue
      pieces.push(bytes.subarray(from, index), typeof replacement === 'string' ? Buffer.from(replacement) : replacement)
      if (cut) {
        length += bytes.toString('utf8', from, index).length
        cut = afterReplacement(cut, length, replacement.length - mark.length)
        length += replacement.length
      }
      from = index + mark.length
    }
    return Buffer.concat([...pieces, bytes.subarray(from)])
  })
  return { bodies: whole, droppable: cut }
}

/**
 * Replaces the marks in a request by what `fetch` resolves with. Rejects with its Failure, or with Failure
 * `payload_too_large` for images that together are too large.
 */
export async function withImages(
  prepared: PreparedRequest,
  fetch: (image: ImageReference) => Promise<Replacement>,
  cpu: { insertImages: (filling: Filling) => ReturnType<typeof filled> | Promise<ReturnType<typeof filled>> },
): Promise<PreparedRequest> {
  const { images, bodies, droppable } = prepared
  if (!images) return prepared
  const replacements: [string, Replacement][] = []
  const waiting = [...images]
  let total = 0
  async function fetchNext(): Promise<void> {
    for (let image = waiting.shift(); image; image = waiting.shift()) {
      const replacement = await fetch(image)
      total += replacement.length
      if (total > maxFilledBytes)
        throw new Failure(
          'payload_too_large',
          `The images of the request have more than ${maxFilledBytes >> 20} MiB together. Send fewer or smaller ones.`,
        )
      replacements.push([image.mark, replacement])
    }
  }
  try {
    await Promise.all(Array.from({ length: concurrency }, fetchNext))
  } catch (thrown) {
    // After the first failure no other image is begun.
    waiting.length = 0
    throw thrown
  }
  const filledIn = await cpu.insertImages({ bodies, droppable, replacements })
  return { ...prepared, images: undefined, ...filledIn }
}
