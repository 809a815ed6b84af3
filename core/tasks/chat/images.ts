import { randomBytes } from 'node:crypto'
import { Failure } from '../../failure.ts'
import type { ChatRequest } from '../../schemas/chat.ts'
import type { ImageReference, Prepared } from '../prepared.ts'

/** So many pictures of one request are fetched; more can be sent inside it. */
const maxFetched = 16

/**
 * The messages with a mark in the place of every picture that is named by its address: engines never get an address,
 * so the picture is fetched when the request has been checked, and put there. Throws Failure `invalid_value` for too many.
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
      // Nobody can write it into a text beforehand.
      const mark = `picture:${randomBytes(16).toString('hex')}`
      images.push({ mark, param, value: part.image_url.url })
      if (images.length > maxFetched)
        throw new Failure(
          'invalid_value',
          `More than ${maxFetched} pictures are named by their addresses; send others as data: URLs.`,
          { param },
        )
      return { ...part, image_url: { ...part.image_url, url: mark } }
    })
    return { ...message, content } as typeof message
  })
  return { messages: images.length === 0 ? messages : marked, images }
}

/** The request with the pictures that it names by address inside. `fetch` gives one as a data: URL. */
export async function withImages(
  prepared: Prepared,
  fetch: (image: ImageReference) => Promise<string>,
): Promise<Prepared> {
  const { images, bodies } = prepared
  if (!images) return prepared
  const fetched = await Promise.all(images.map(async image => [image.mark, await fetch(image)] as const))
  const filled = bodies.map(body => {
    let text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
    // A data: URL is letters, digits and a few signs: as it is, it is the inside of a JSON text.
    for (const [mark, url] of fetched) text = text.replace(mark, () => url)
    return text
  })
  return { ...prepared, bodies: filled }
}
