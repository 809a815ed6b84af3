import type { Segment } from './references.ts'

const pictureName = /^(images?|mask)$/
const mediaName = /^((image|mask|video|audio)(_url)?|file)$/

/** Whether the address of a picture, a video or a sound belongs at a place of inputs: `image_url`, `url`, or `url` within such a one. */
export function isMediaField(at: readonly Segment[]): boolean {
  const [name, around] = [at.at(-1), at.at(-2)]
  if (at.length === 1) return name === 'url' || mediaName.test(String(name))
  // A picture in the words of OpenAI: `images[0].image_url`.
  if (name === 'image_url' && pictureName.test(String(at[0]))) return true
  return name === 'url' && mediaName.test(String(around))
}

/** Where such an address belongs and an object with one stands, or a list of such, its address is taken. */
export function withAddresses(value: unknown, at: readonly Segment[] = []): unknown {
  if (value === null || typeof value !== 'object') return value
  if (isMediaField(at)) return addressOf(value)
  if (Array.isArray(value)) return value.map((part, index) => withAddresses(part, [...at, index]))
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withAddresses(part, [...at, name])]))
}

function addressOf(value: object): unknown {
  const first: unknown = Array.isArray(value) ? value[0] : value
  if (first === null || typeof first !== 'object') return value
  // What says a text names its file beside other facts of it.
  const url = 'url' in first ? first.url : 'audio_url' in first ? first.audio_url : undefined
  return typeof url === 'string' ? url : value
}
