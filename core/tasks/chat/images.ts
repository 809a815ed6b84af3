import { randomBytes } from 'node:crypto'
import { Failure } from '../../failure.ts'
import type { ChatRequest } from '../../schemas/chat.ts'
import type { ImageReference, Prepared } from '../prepared.ts'

/** Maximum images of one request that are fetched; more can be sent as data: URLs. */
const maxFetched = 16

/**
 * Replaces every image URL in the messages by a mark. Engines never get a URL, so the images are fetched after the request
 * was checked and replace the marks. Throws Failure `invalid_value` for too many images.
 */
export function markImages(messages: ChatRequest['messages']): {
  messages: ChatRequest['messages']
  images: ImageReference[]
} {
  const images: ImageReference[] = []
  const marked = messages.map((message, at) => {
    if (!Array.isArray(message.content)) return message
    const content = message.content.map((part, place) => {
      if (part.type !== 'image_url' || part.image_url.url.startsWith('data:')) return part
      const param = `messages[${at}].content[${place}].image_url.url`
      // Random, so that no text of the caller can contain it.
      const mark = `image:${randomBytes(16).toString('hex')}`
      images.push({ mark, param, value: part.image_url.url })
      if (images.length > maxFetched)
        throw new Failure(
          'invalid_value',
          `More than ${maxFetched} images are sent as http(s) URLs. Send the others as data: URLs.`,
          { param },
        )
      return { ...part, image_url: { ...part.image_url, url: mark } }
    })
    return { ...message, content } as typeof message
  })
  return { messages: images.length === 0 ? messages : marked, images }
}

/** Replaces the marks in a request by the images. `fetch` resolves with an image as a data: URL. */
export async function withImages(
  prepared: Prepared,
  fetch: (image: ImageReference) => Promise<string>,
): Promise<Prepared> {
  const { images, bodies } = prepared
  if (!images) return prepared
  const fetched = await Promise.all(images.map(async image => [image.mark, await fetch(image)] as const))
  const filled = bodies.map(body => {
    let text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
    // A data: URL needs no escaping in a JSON text.
    for (const [mark, url] of fetched) text = text.replace(mark, () => url)
    return text
  })
  return { ...prepared, bodies: filled }
}
