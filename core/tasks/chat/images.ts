import { randomBytes } from 'node:crypto'
import { invalid } from '../../failure.ts'
import type { Media, MediaSender } from '../../media/media.ts'
import type { ChatRequest } from '../../schemas/chat.ts'
import type { ImageReference, PreparedRequest } from '../engine-request.ts'
import { afterReplacement } from './truncation.ts'

/** Maximum images of one request that are fetched; more can be sent as data: URLs. */
const maxFetched = 16

/**
 * Replaces every image URL and every id of a stored file in the messages by a mark. Engines never get a URL, so images and
 * files are fetched after the request was checked and replace the marks. Throws Failure `invalid_value` for too many.
 */
export function markImages(messages: ChatRequest['messages']): {
  messages: ChatRequest['messages']
  images: ImageReference[]
} {
  const images: ImageReference[] = []
  function mark(param: string, value: string, kind?: 'text'): string {
    // Random, so that no text of the caller can contain it.
    const placeholder = `image:${randomBytes(16).toString('hex')}`
    images.push({ mark: placeholder, param, value, kind })
    if (images.length > maxFetched)
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
      if (part.type !== 'image_url' || part.image_url.url.startsWith('data:')) return part
      const param = `messages[${at}].content[${place}].image_url.url`
      const url = mark(param, part.image_url.url)
      return { ...part, image_url: { ...part.image_url, url } }
    })
    return { ...message, content } as typeof message
  })
  return { messages: images.length === 0 ? messages : marked, images }
}

/** Returns a `fetch` for `withImages`: images as data: URLs, and stored files as the content of a JSON string. */
export const fetchFrom =
  (media: Pick<Media, 'imageDataUrl' | 'fileText'>, sender: MediaSender) =>
  async ({ kind, param, value }: ImageReference): Promise<string> =>
    kind === 'text'
      ? JSON.stringify(await media.fileText(sender, param, value)).slice(1, -1)
      : media.imageDataUrl(sender, param, value)

/** Replaces the marks in a request by what `fetch` resolves with, which must need no escaping in a JSON text. */
export async function withImages(
  prepared: PreparedRequest,
  fetch: (image: ImageReference) => Promise<string>,
): Promise<PreparedRequest> {
  const { images, bodies } = prepared
  if (!images) return prepared
  const fetched = await Promise.all(images.map(async image => [image.mark, await fetch(image)] as const))
  let { droppable } = prepared
  const filled = bodies.map(body => {
    let text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
    for (const [mark, url] of fetched) {
      const at = text.indexOf(mark)
      droppable = droppable && afterReplacement(droppable, at, url.length - mark.length)
      text = text.replace(mark, () => url)
    }
    return text
  })
  return { ...prepared, bodies: filled, droppable }
}
